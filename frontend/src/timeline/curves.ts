/** The resources of a machine over time, as areas: in each column of pixels all that was between the lowest and the
highest value there is in full colour, so that a spike is seen however far away it is. */
import { measured } from "../format";
import type { Curve } from "./layout";
import { decodeHead } from "./tiles";
import type { View } from "./view";

/** Points of all series within a tile: rows `first` to `last` of its columns. */
export interface Curves {
  t0: number;
  unit: number;
  first: Int32Array;
  start: Int32Array;
  dur: Uint32Array;
  low: Float32Array;
  high: Float32Array;
  mean: Float32Array;
  count: Uint32Array;
}

export interface Ink {
  area: number;
  line: number;
}

/** Colours by key of the series; of GPUs without their number. */
export const INKS: Record<string, string> = {
  cpu: "--c1",
  "cpu-others": "--c8",
  memory: "--c4",
  "net-in": "--c6",
  "net-out": "--c7",
  "disk-read": "--c5",
  "disk-written": "--c2",
  "gpu-busy": "--c3",
  "gpu-memory": "--c4",
};
const MAGIC = 0x43545353;

export function decodeCurves(buffer: ArrayBuffer): Curves {
  const { rows, at, ...head } = decodeHead(buffer, MAGIC);
  return {
    ...head,
    start: new Int32Array(buffer, at(0), rows),
    dur: new Uint32Array(buffer, at(1), rows),
    low: new Float32Array(buffer, at(2), rows),
    high: new Float32Array(buffer, at(3), rows),
    mean: new Float32Array(buffer, at(4), rows),
    count: new Uint32Array(buffer, at(5), rows),
  };
}

interface Picture {
  pixels: Uint32Array;
  width: number;
  height: number;
}

interface Box {
  top: number;
  tall: number;
  /** What lies above it belongs to others. */
  floor: number;
  scale: number;
}

/** One series into the picture; how many looks stand in points with others. */
export function drawCurve(into: Picture, tiles: Curves[], row: Curve, view: View, box: Box, ink: Ink): number {
  const low = new Float32Array(into.width).fill(Number.POSITIVE_INFINITY);
  const high = new Float32Array(into.width).fill(-1);
  const merged = spread(tiles, row.index, view, low, high);
  const { top, tall, floor, scale } = box;
  const per = row.series.most > 0 ? (tall - scale) / row.series.most : 0; // what was 0 all the time is a line at the bottom
  const bottom = Math.min(into.height, top + tall);
  for (let x = 0; x < into.width; x++) {
    const most = high[x] as number;
    if (most < 0) continue;
    const first = top + tall - scale - Math.round(most * per);
    const last = top + tall - Math.round((low[x] as number) * per);
    for (let y = Math.max(floor, first); y < bottom; y++) into.pixels[y * into.width + x] = y < last ? ink.line : ink.area;
  }
  return merged;
}

/** The lowest and the highest value of each column of pixels. */
function spread(tiles: Curves[], index: number, view: View, low: Float32Array, high: Float32Array): number {
  const width = low.length;
  const perNs = width / (view.to - view.from);
  let merged = 0;
  for (const tile of tiles) {
    for (let at = tile.first[index] ?? 0; at < (tile.first[index + 1] ?? 0); at++) {
      const start = tile.t0 + (tile.start[at] as number) * tile.unit;
      if (start < tile.t0 && tile !== tiles[0]) continue; // drawn with the tile before
      const x0 = Math.max(0, Math.floor((start - view.from) * perNs));
      const x1 = Math.min(width, Math.ceil((start + (tile.dur[at] as number) * tile.unit - view.from) * perNs));
      if (x0 >= width || x1 <= 0) continue;
      const count = tile.count[at] as number;
      if (count > 1) merged += count;
      const [least, most] = [tile.low[at] as number, tile.high[at] as number];
      for (let x = x0; x < Math.max(x1, x0 + 1); x++) {
        if (least < (low[x] as number)) low[x] = least;
        if (most > (high[x] as number)) high[x] = most;
      }
    }
  }
  return merged;
}

/** What a series was at a time, in words; of merged looks the lowest, the highest and the mean. */
export function valueAt(tiles: Curves[], row: Curve, ns: number): string {
  const { series, index } = row;
  for (const tile of tiles) {
    for (let at = (tile.first[index + 1] ?? 0) - 1; at >= (tile.first[index] ?? 0); at--) {
      const start = tile.t0 + (tile.start[at] as number) * tile.unit;
      if (ns < start || ns >= start + (tile.dur[at] as number) * tile.unit) continue;
      const say = (value: number) => measured(value, series.unit);
      const count = tile.count[at] as number;
      const [low, mean, high] = [tile.low[at] as number, tile.mean[at] as number, tile.high[at] as number];
      const what = count > 1 ? `${say(low)} to ${say(high)}, mean ${say(mean)} (${count.toLocaleString("en-US")} looks merged)` : say(mean);
      return `${series.title}: ${what}, at ${(ns / 1e9).toFixed(3)} s; ${series.about}`;
    }
  }
  return `${series.title}: not known`;
}
