/** Tiles of marks: asked for when they are seen, kept while there is room. */
import { get, Problem } from "../api";
import { doubt } from "../connection";
import type { SpanName, SpanNames } from "../generated/api";
import type { View } from "./view";

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
/** In place of a group's number: tiles that hold all there is. */
export const WHOLE = -1;
const MOST_TILES = 160;
/** More would only wait for each other in the server. */
const AT_ONCE = 4;
const NAMES_A_PAGE = 10_000;

/** What all tiles begin with: rows are marks of lanes, or points of series. */
export function decodeHead(buffer: ArrayBuffer, magic: number) {
  const head = new DataView(buffer);
  if (head.getUint32(0, true) !== magic) throw new Error("no tile");
  const parts = head.getUint32(4, true);
  const rows = head.getUint32(8, true);
  const table = new Uint32Array(buffer, HEAD, 2 * parts);
  const first = new Int32Array(parts + 1);
  for (let part = 0; part < parts; part++) first[part + 1] = (first[part] ?? 0) + (table[2 * part + 1] ?? 0);
  const at = (column: number) => HEAD + 8 * parts + 4 * rows * column;
  return { t0: Number(head.getBigInt64(16, true)), unit: 2 ** head.getUint32(12, true), first, rows, at };
}

export function decode(buffer: ArrayBuffer): Tile {
  const { rows, at, ...head } = decodeHead(buffer, MAGIC);
  return {
    ...head,
    start: new Int32Array(buffer, at(0), rows),
    dur: new Uint32Array(buffer, at(1), rows),
    name: new Uint32Array(buffer, at(2), rows),
    count: new Uint32Array(buffer, at(3), rows),
    row: new Uint32Array(buffer, at(4), rows),
  };
}

/** The tiles of one build: of marks or of curves. */
export class Tiles<T> {
  private kept = new Map<string, T>();
  private wanted: string[] = [];
  private next: string[] = [];
  private asking = new Set<string>();
  private failed = new Set<string>();
  private ended = new AbortController();

  constructor(
    private readonly path: string,
    private readonly build: string,
    private readonly decode: (buffer: ArrayBuffer) => T,
    private readonly told: (problem: Problem | null) => void,
  ) {}

  /** The tile, if it is there; else it is asked for. */
  at(level: number, tile: number, group: number): T | null {
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
  peek(level: number, tile: number, group: number): T | null {
    return this.kept.get(`${level}/${tile}/${group}`) ?? null;
  }

  /** Ask for what was missed since the last time, and for nothing before that. Whether anything is missing. */
  ask(): boolean {
    const missing = this.wanted.length > 0 || this.asking.size > 0;
    this.next = this.wanted;
    this.wanted = [];
    this.fill();
    return missing;
  }

  private fill(): void {
    while (this.next.length && this.asking.size < AT_ONCE) {
      const key = this.next.shift() as string;
      if (!this.asking.has(key) && !this.kept.has(key)) this.load(key);
    }
  }

  /** What failed may be asked for once more: the server is back. */
  again(): void {
    this.failed.clear();
  }

  stop(): void {
    this.ended.abort();
  }

  private load(key: string): void {
    const [level, tile, group] = key.split("/").map(Number);
    this.asking.add(key);
    const place = `build=${this.build}&level=${level}&tile=${tile}${group === WHOLE ? "" : `&group=${group}`}`;
    fetch(`/api/v1${this.path}?${place}`, {
      credentials: "same-origin",
      signal: this.ended.signal,
    })
      .then(async (response) => {
        if (!response.ok) throw new Problem(response.status, `a part of the timeline is missing: ${response.statusText}`);
        this.kept.set(key, this.decode(await response.arrayBuffer()));
        for (const oldest of this.kept.keys()) {
          if (this.kept.size <= MOST_TILES) break;
          this.kept.delete(oldest);
        }
        return null;
      })
      .catch((error: unknown) => {
        this.failed.add(key);
        if (error instanceof Problem) return error;
        if (!this.ended.signal.aborted) void doubt();
        return new Problem(0, "the server does not answer; has stepscope view ended?");
      })
      .then((problem) => {
        this.asking.delete(key);
        if (this.ended.signal.aborted) return;
        this.fill();
        this.told(problem);
      });
  }
}

/** The finest level whose buckets are no wider than a pixel. */
export function levelOf(view: View, pixels: number): number {
  return Math.min(MAX_LEVEL, Math.max(0, Math.floor(Math.log2((view.to - view.from) / Math.max(1, pixels)))));
}

/** Tiles that show a group of lanes in a range; coarser or finer ones that are there stand in for what is missing. */
export function covering<T>(tiles: Tiles<T>, view: View, pixels: number, group: number): T[] {
  const level = levelOf(view, pixels);
  const size = 2 ** (level + TILE_LOG2);
  const found: T[] = [];
  for (let at = Math.max(0, Math.floor(view.from / size)); at * size < view.to; at++) {
    const tile = tiles.at(level, at, group);
    for (const one of tile ? [tile] : standIns(tiles, level, at, group)) if (!found.includes(one)) found.push(one);
  }
  return found;
}

function standIns<T>(tiles: Tiles<T>, level: number, at: number, group: number): T[] {
  for (let up = 1; up <= 8; up++) {
    const coarser = tiles.peek(level + up, Math.floor(at / 2 ** up), group);
    if (coarser) return [coarser];
  }
  return [2 * at, 2 * at + 1].map((half) => tiles.peek(level - 1, half, group)).filter((tile) => tile !== null);
}

/** All names of a build, page by page; `more` is told after each. */
export async function loadNames(path: string, build: string, total: number, more: (names: SpanName[]) => void, signal: AbortSignal): Promise<void> {
  const names: SpanName[] = [];
  while (names.length < total) {
    const page = await get<SpanNames>(
      `${path}/timeline/names?build=${build}&offset=${names.length}&limit=${NAMES_A_PAGE}`,
      signal,
    );
    if (!page.items.length) return;
    names.push(...page.items);
    more(names);
  }
}
