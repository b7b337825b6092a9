/** Which lane is drawn where: groups, tracks below each other, folded or not. */
import type { TimelineSeries, Track } from "../generated/api";

export const LANE = 18;
export const CURVE = 32;
export const GROUP = 24;
/** What the address calls the lanes of resources. */
export const RESOURCES = "resources";
/** Lanes of a track that are shown before somebody asks for all. */
export const FEW = 8;

const OF_STEPS = new Set(["steps", "parts"]);

interface Placed {
  top: number;
  /** It stays in sight while the rest scrolls. */
  pinned: boolean;
}

export interface Row extends Placed {
  track: Track;
  height: number;
  /** Lanes that are drawn. */
  lanes: number;
}

/** The lane of a resource. */
export interface Curve extends Placed {
  series: TimelineSeries;
  /** Number of the series in tiles. */
  index: number;
}

/** What begins a group. */
export interface Head extends Placed {
  text: string;
  /** By which it folds; empty: it does not. */
  fold: string;
  /** By how much the times of the group may be off; null: not known. */
  bound: number | null;
}

export interface Layout {
  rows: Row[];
  curves: Curve[];
  heads: Head[];
  height: number;
  /** How much of it stays in sight. */
  pinned: number;
}

/** What the address says of lanes, by the keys of tracks and series. */
export interface Words {
  /** Tracks with all their lanes. */
  open: Set<string>;
  /** Tracks with one lane, and `resources`. */
  fold: Set<string>;
  /** What stands first, in this order. */
  pin: Set<string>;
}

/** `room`: what is pinned stays in sight as long as it is no higher. `first`: the op trace whose lanes stand below the steps. */
export function layout(tracks: Track[], series: TimelineSeries[], words: Words, room: number, first = ""): Layout {
  const made: Layout = { rows: [], curves: [], heads: [], height: 0, pinned: 0 };
  let group = "";
  const begin = (text: string, fold: string, bound: number | null = 0) => {
    if (text === group) return;
    group = text;
    made.heads.push({ text, top: made.height, fold, bound, pinned: false });
    made.height += GROUP;
  };
  const curve = (one: TimelineSeries) => {
    made.curves.push({ series: one, index: series.indexOf(one), top: made.height, pinned: false });
    made.height += CURVE;
  };
  const row = (track: Track) => {
    const { key } = track;
    const lanes = words.fold.has(key) ? 1 : words.open.has(key) ? track.lanes : Math.min(FEW, track.lanes);
    const height = lanes * LANE + 3;
    made.rows.push({ track, top: made.height, height, lanes, pinned: false });
    made.height += height;
  };
  for (const key of words.pin) {
    const [one, track] = [series.find((s) => s.key === key), tracks.find((t) => t.key === key && t.lanes)];
    if (one || track) begin("pinned", "");
    if (one) curve(one);
    else if (track) row(track);
  }
  if (made.height && made.height <= room) {
    made.pinned = made.height;
    for (const placed of [...made.heads, ...made.curves, ...made.rows]) placed.pinned = true;
  }
  const threads = (some: Track[]) => {
    for (const track of some) {
      if (!track.lanes || words.pin.has(track.key)) continue;
      begin(track.group, "", track.bound_ns);
      row(track);
    }
  };
  /** The steps and their parts, and then the lanes that were traced: who asks for a capture looks at nothing else. */
  const above = first ? tracks.filter((track) => track.trace === first || OF_STEPS.has(track.key)) : [];
  threads(above);
  const beside = (name: string) => tracks.filter((track) => track.group === name && !above.includes(track));
  const groups = new Set(series.map((one) => one.group));
  for (const name of groups) {
    for (const one of series) {
      if (one.group !== name || words.pin.has(one.key)) continue;
      begin(name, RESOURCES);
      if (!words.fold.has(RESOURCES)) curve(one);
    }
    threads(beside(name));
  }
  threads(tracks.filter((track) => !above.includes(track) && !groups.has(track.group)));
  return made;
}

/** Where something is drawn when so much is scrolled. */
export function yOf(placed: { top: number; pinned: boolean }, scroll: number): number {
  return placed.pinned ? placed.top : placed.top - scroll;
}

const unscrolled = (made: Layout, y: number, scroll: number) => (y < made.pinned ? y : y + scroll);

/** The lane at a height, if there is one. */
export function laneAt(made: Layout, y: number, scroll: number): number | null {
  const at = unscrolled(made, y, scroll);
  for (const row of made.rows) {
    const lane = Math.floor((at - row.top) / LANE);
    if (at >= row.top && lane < row.lanes) return row.track.first_lane + lane;
  }
  return null;
}

/** The resource at a height, if there is one. */
export function curveAt(made: Layout, y: number, scroll: number): Curve | null {
  const at = unscrolled(made, y, scroll);
  return made.curves.find((row) => at >= row.top && at < row.top + CURVE) ?? null;
}

/** Where a lane is drawn; of a lane that is folded away, its track. */
export function topOf(made: Layout, lane: number): { top: number; row: Row; hidden: boolean } | null {
  const row = made.rows.find((r) => lane >= r.track.first_lane && lane < r.track.first_lane + r.track.lanes);
  if (!row) return null;
  const depth = lane - row.track.first_lane;
  const hidden = depth >= row.lanes;
  return { top: row.top + Math.min(depth, row.lanes - 1) * LANE, row, hidden };
}
