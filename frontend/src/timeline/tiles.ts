/** What the server tells of a timeline, and tiles of marks: asked for when they are seen, kept while there is room. */
import { get, Problem } from "../api";

export interface Track {
  key: string;
  group: string;
  title: string;
  kind: string;
  first_lane: number;
  lanes: number;
  spans: number;
  begin_ns: number;
  end_ns: number;
  worker: string;
  trace: string;
}

export interface Timeline {
  state: "building" | "ready" | "failed";
  progress_ratio: number;
  doing: string;
  build: string;
  renewing: boolean;
  begin_ns: number;
  end_ns: number;
  spans: number;
  names: number;
  lanes_per_tile: number;
  tracks: Track[];
  left_out: { what: string; count: number }[];
  traces: { ref: string; trace: string; begin_ns: number; end_ns: number }[];
}

export interface SpanName {
  text: string;
  category: string;
  file: string;
  line: number;
  function: string;
}

export interface Span {
  lane: number;
  row: number;
  name: number;
  start_ns: number;
  dur_ns: number;
}

export interface SpanDetail {
  span: Span;
  name: SpanName;
  track: string;
  depth: number;
  spans: number;
  previous_ns: number | null;
  next_ns: number | null;
  parent_ns: number | null;
  child_ns: number | null;
  step: number | null;
}

/** Marks of one lane within a tile: rows `first` to `last` of the tile's columns. */
export interface Tile {
  t0: number;
  unit: number;
  first: Int32Array;
  start: Int32Array;
  dur: Uint32Array;
  /** Number of the name, and in the upper eight bits how busy it is. */
  name: Uint32Array;
  count: Uint32Array;
  row: Uint32Array;
}

export const TILE_LOG2 = 10;
export const MAX_LEVEL = 46;
const MAGIC = 0x4c545353;
const HEAD = 32;
const MOST_TILES = 160;
/** More would only wait for each other in the server. */
const AT_ONCE = 4;
const NAMES_A_PAGE = 10_000;

export function decode(buffer: ArrayBuffer): Tile {
  const head = new DataView(buffer);
  if (head.getUint32(0, true) !== MAGIC) throw new Error("no tile");
  const lanes = head.getUint32(4, true);
  const marks = head.getUint32(8, true);
  const table = new Uint32Array(buffer, HEAD, 2 * lanes);
  const first = new Int32Array(lanes + 1);
  for (let lane = 0; lane < lanes; lane++) first[lane + 1] = (first[lane] ?? 0) + (table[2 * lane + 1] ?? 0);
  const at = (column: number) => HEAD + 8 * lanes + 4 * marks * column;
  return {
    t0: Number(head.getBigInt64(16, true)),
    unit: 2 ** head.getUint32(12, true),
    first,
    start: new Int32Array(buffer, at(0), marks),
    dur: new Uint32Array(buffer, at(1), marks),
    name: new Uint32Array(buffer, at(2), marks),
    count: new Uint32Array(buffer, at(3), marks),
    row: new Uint32Array(buffer, at(4), marks),
  };
}

/** The tiles of one build. */
export class Tiles {
  private kept = new Map<string, Tile>();
  private wanted: string[] = [];
  private asking = new Set<string>();
  private failed = new Set<string>();
  private ended = new AbortController();

  constructor(
    private readonly path: string,
    private readonly build: string,
    private readonly told: (problem: Problem | null) => void,
  ) {}

  /** The tile, if it is there; else it is asked for. */
  at(level: number, tile: number, group: number): Tile | null {
    const key = `${level}/${tile}/${group}`;
    const found = this.kept.get(key);
    if (found) {
      this.kept.delete(key); // the last used stands last
      this.kept.set(key, found);
      return found;
    }
    if (!this.asking.has(key) && !this.failed.has(key)) this.wanted.push(key);
    return null;
  }

  /** The tile, if it is there. */
  peek(level: number, tile: number, group: number): Tile | null {
    return this.kept.get(`${level}/${tile}/${group}`) ?? null;
  }

  /** Ask for what was missed since the last time, and for nothing before that. Whether anything is missing. */
  ask(): boolean {
    const missing = this.wanted.length > 0 || this.asking.size > 0;
    while (this.wanted.length && this.asking.size < AT_ONCE) this.load(this.wanted.shift() as string);
    this.wanted = [];
    return missing;
  }

  stop(): void {
    this.ended.abort();
  }

  private load(key: string): void {
    const [level, tile, group] = key.split("/");
    this.asking.add(key);
    fetch(`/api/v1${this.path}/timeline/tile?build=${this.build}&level=${level}&tile=${tile}&group=${group}`, {
      credentials: "same-origin",
      signal: this.ended.signal,
    })
      .then(async (response) => {
        if (!response.ok) throw new Problem(response.status, `a part of the timeline is missing: ${response.statusText}`);
        this.kept.set(key, decode(await response.arrayBuffer()));
        for (const oldest of this.kept.keys()) {
          if (this.kept.size <= MOST_TILES) break;
          this.kept.delete(oldest);
        }
        return null;
      })
      .catch((error: unknown) => {
        this.failed.add(key);
        return error instanceof Problem ? error : new Problem(0, "the server does not answer: has stepscope view ended?");
      })
      .then((problem) => {
        this.asking.delete(key);
        if (!this.ended.signal.aborted) this.told(problem);
      });
  }
}

/** All names of a build, page by page; `more` is told after each. */
export async function loadNames(path: string, build: string, total: number, more: (names: SpanName[]) => void, signal: AbortSignal): Promise<void> {
  const names: SpanName[] = [];
  while (names.length < total) {
    const page = await get<{ items: SpanName[] }>(
      `${path}/timeline/names?build=${build}&offset=${names.length}&limit=${NAMES_A_PAGE}`,
      signal,
    );
    if (!page.items.length) return;
    names.push(...page.items);
    more(names);
  }
}
