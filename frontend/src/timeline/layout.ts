/** Which lane is drawn where: groups, tracks below each other, folded or not. */
import type { Track } from "./tiles";

export const LANE = 18;
export const GROUP = 24;
/** Lanes of a track that are shown before somebody asks for all. */
export const FEW = 8;

export interface Row {
  track: Track;
  top: number;
  height: number;
  /** Lanes that are drawn. */
  lanes: number;
  /** Begins a group. */
  group: string;
}

export interface Layout {
  rows: Row[];
  height: number;
}

/** `open`: tracks with all their lanes; `fold`: tracks with one. */
export function layout(tracks: Track[], open: Set<string>, fold: Set<string>): Layout {
  const rows: Row[] = [];
  let top = 0;
  let group = "";
  for (const track of tracks) {
    if (!track.lanes) continue;
    const begins = track.group === group ? "" : track.group;
    if (begins) top += GROUP;
    group = track.group;
    const lanes = fold.has(track.key) ? 1 : open.has(track.key) ? track.lanes : Math.min(FEW, track.lanes);
    const height = lanes * LANE + 3;
    rows.push({ track, top, height, lanes, group: begins });
    top += height;
  }
  return { rows, height: top };
}

/** The lane at a height, if there is one. */
export function laneAt(made: Layout, y: number): number | null {
  for (const row of made.rows) {
    const lane = Math.floor((y - row.top) / LANE);
    if (y >= row.top && lane < row.lanes) return row.track.first_lane + lane;
  }
  return null;
}

/** Where a lane is drawn; of a lane that is folded away, its track. */
export function topOf(made: Layout, lane: number): { top: number; row: Row; hidden: boolean } | null {
  const row = made.rows.find((r) => lane >= r.track.first_lane && lane < r.track.first_lane + r.track.lanes);
  if (!row) return null;
  const depth = lane - row.track.first_lane;
  const hidden = depth >= row.lanes;
  return { top: row.top + Math.min(depth, row.lanes - 1) * LANE, row, hidden };
}
