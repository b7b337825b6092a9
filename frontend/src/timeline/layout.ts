/** Which lane is drawn where: groups, tracks below each other, folded or not. */
import type { Series, Track } from "./tiles";

export const LANE = 18;
export const CURVE = 32;
export const GROUP = 24;
/** What the address calls the lanes of resources. */
export const RESOURCES = "resources";
/** Lanes of a track that are shown before somebody asks for all. */
export const FEW = 8;

export interface Row {
  track: Track;
  top: number;
  height: number;
  /** Lanes that are drawn. */
  lanes: number;
}

/** The lane of a resource. */
export interface Curve {
  series: Series;
  /** Number of the series in tiles. */
  index: number;
  top: number;
}

/** What begins a group. */
export interface Head {
  text: string;
  top: number;
  /** By which it folds; empty: it does not. */
  fold: string;
}

export interface Layout {
  rows: Row[];
  curves: Curve[];
  heads: Head[];
  height: number;
}

/** `open`: tracks with all their lanes; `fold`: tracks with one, and `resources`. */
export function layout(tracks: Track[], series: Series[], open: Set<string>, fold: Set<string>): Layout {
  const made: Layout = { rows: [], curves: [], heads: [], height: 0 };
  let group = "";
  const begin = (text: string, word: string) => {
    if (text === group) return;
    group = text;
    made.heads.push({ text, top: made.height, fold: word });
    made.height += GROUP;
  };
  series.forEach((one, index) => {
    begin(one.group, RESOURCES);
    if (fold.has(RESOURCES)) return;
    made.curves.push({ series: one, index, top: made.height });
    made.height += CURVE;
  });
  for (const track of tracks) {
    if (!track.lanes) continue;
    begin(track.group, "");
    const lanes = fold.has(track.key) ? 1 : open.has(track.key) ? track.lanes : Math.min(FEW, track.lanes);
    const height = lanes * LANE + 3;
    made.rows.push({ track, top: made.height, height, lanes });
    made.height += height;
  }
  return made;
}

/** The lane at a height, if there is one. */
export function laneAt(made: Layout, y: number): number | null {
  for (const row of made.rows) {
    const lane = Math.floor((y - row.top) / LANE);
    if (y >= row.top && lane < row.lanes) return row.track.first_lane + lane;
  }
  return null;
}

/** The resource at a height, if there is one. */
export function curveAt(made: Layout, y: number): Curve | null {
  return made.curves.find((row) => y >= row.top && y < row.top + CURVE) ?? null;
}

/** Where a lane is drawn; of a lane that is folded away, its track. */
export function topOf(made: Layout, lane: number): { top: number; row: Row; hidden: boolean } | null {
  const row = made.rows.find((r) => lane >= r.track.first_lane && lane < r.track.first_lane + r.track.lanes);
  if (!row) return null;
  const depth = lane - row.track.first_lane;
  const hidden = depth >= row.lanes;
  return { top: row.top + Math.min(depth, row.lanes - 1) * LANE, row, hidden };
}
