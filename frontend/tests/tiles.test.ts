/** Tiles: what their bytes say, which of them a view needs, and how they are asked for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Curve } from "../src/timeline/layout";
import "./page";

const { covering, decode, levelOf, MAX_LEVEL, Tiles, TILE_LOG2 } = await import("../src/timeline/tiles");
const { decodeCurves, drawCurve, valueAt } = await import("../src/timeline/curves");

const SPANS = 0x4c545353;
const CURVES = 0x43545353;

/** Bytes of a tile: counts of marks of each lane, and columns of numbers, each a value of four bytes. */
function bytes(magic: number, counts: number[], columns: ArrayBufferView[], { log2 = 0, t0 = 0n } = {}): ArrayBuffer {
  const rows = counts.reduce((sum, one) => sum + one, 0);
  const buffer = new ArrayBuffer(32 + 8 * counts.length + 4 * rows * columns.length);
  const head = new DataView(buffer);
  [magic, counts.length, rows, log2].forEach((value, at) => head.setUint32(4 * at, value, true));
  head.setBigInt64(16, t0, true);
  counts.forEach((value, at) => head.setUint32(32 + 8 * at + 4, value, true));
  columns.forEach((column, at) => new Uint8Array(buffer).set(new Uint8Array(column.buffer), 32 + 8 * counts.length + 4 * rows * at));
  return buffer;
}

const spans = (counts: number[], start: number[], more = {}) =>
  bytes(SPANS, counts, [Int32Array.from(start), ...Array.from({ length: 4 }, () => Uint32Array.from(start, (_, at) => at + 1))], more);
const looks = (start: number[], values: number[], count = values.map(() => 1)) =>
  decodeCurves(
    bytes(CURVES, [values.length], [Int32Array.from(start), Uint32Array.from(values, () => 10), ...Array.from({ length: 3 }, () => Float32Array.from(values)), Uint32Array.from(count)]),
  );

test("a tile has the marks of each of its lanes", () => {
  const tile = decode(spans([2, 0, 1], [-3, 5, 9], { log2: 4, t0: -(2n ** 40n) }));
  assert.deepEqual([...tile.first], [0, 2, 2, 3]);
  assert.deepEqual([...tile.start], [-3, 5, 9]);
  assert.deepEqual([...tile.row], [1, 2, 3]);
  assert.deepEqual([tile.unit, tile.t0], [16, -(2 ** 40)]);
  assert.deepEqual([...decode(spans([], [])).first], [0]);
  assert.throws(() => decode(bytes(CURVES, [], [])), /no tile/);
  assert.throws(() => decode(new ArrayBuffer(8)));
});

test("the level is the finest whose buckets are no wider than a pixel", () => {
  assert.equal(levelOf({ from: 0, to: 1024 }, 1024), 0);
  assert.equal(levelOf({ from: 0, to: 4096 }, 1000), 2);
  assert.equal(levelOf({ from: 5, to: 5 }, 100), 0);
  assert.equal(levelOf({ from: 0, to: 1e300 }, 0), MAX_LEVEL);
});

test("what is missing is asked for once, and coarser or finer tiles stand in for it", async () => {
  const asked: string[] = [];
  globalThis.fetch = (async (url: string) => {
    asked.push(url);
    return new Response(spans([1], [7]));
  }) as typeof fetch;
  let told = 0;
  const tiles = new Tiles("/s", "b", decode, () => (told += 1));
  const size = 2 ** TILE_LOG2;
  assert.deepEqual(covering(tiles, { from: 2 * size, to: 4 * size }, 2 * size, 0), []);
  assert.equal(tiles.ask(), true);
  await settled(() => told === 2);
  assert.deepEqual(asked, ["/api/v1/s?build=b&level=0&tile=2&group=0", "/api/v1/s?build=b&level=0&tile=3&group=0"]);
  assert.equal(covering(tiles, { from: 2 * size, to: 4 * size }, 2 * size, 0).length, 2);
  assert.equal(tiles.ask(), false);
  assert.equal(covering(tiles, { from: 2 * size, to: 4 * size }, size, 0).length, 2, "two finer tiles stand in for one");
  assert.equal(covering(tiles, { from: 2 * size - 9, to: 2 * size }, 9, 0).length, 0);
});

test("what failed is not asked for again until the server is back", async () => {
  let there = false;
  globalThis.fetch = (async (url: string) => {
    if (!there) throw new TypeError(`no ${url}`);
    return new Response(spans([1], [7]));
  }) as typeof fetch;
  const told: unknown[] = [];
  const tiles = new Tiles("/s", "b", decode, (problem) => told.push(problem?.status ?? null));
  const look = () => [tiles.at(0, 0, 0), tiles.ask()];
  look();
  await settled(() => told.length === 1);
  assert.deepEqual(told, [0]);
  assert.deepEqual(look(), [null, false]);
  there = true;
  tiles.again();
  assert.deepEqual(look(), [null, true]);
  await settled(() => told.length === 2);
  assert.ok(tiles.at(0, 0, 0));
});

const box = { top: 0, tall: 10, floor: 0, scale: 1 };
const ink = { area: 1, line: 2 };
const row = (most: number, unit = "threads") => ({ index: 0, series: { most, unit, title: "CPU", about: "all" } }) as Curve;

function drawn(tile: ReturnType<typeof looks>, most: number, width = 10): string[] {
  const pixels = new Uint32Array(width * 10);
  drawCurve({ pixels, width, height: 10 }, [tile], row(most), { from: 0, to: 100 }, box, ink);
  return Array.from({ length: 10 }, (_, y) => [...pixels.subarray(y * width, (y + 1) * width)].join(""));
}

test("a spike is drawn however far away it is", () => {
  assert.deepEqual(drawn(looks([0, 10, 20], [0, 5, 0]), 5)[0], "0200000000");
});

test("a resource that was never used is a line at the bottom", () => {
  const rows = drawn(looks([0, 10], [0, 0]), 0);
  assert.match(rows.at(-1) ?? "", /^[12]{2}0{8}$/);
  assert.ok(rows.slice(0, -1).every((one) => /^0+$/.test(one)));
});

test("what a resource was at a time, and where nobody looked", () => {
  const tile = looks([0, 10], [1, 2500.5], [1, 1200]);
  assert.equal(valueAt([tile], row(3), 5), "CPU: 1 thread, at 0.000 s; all");
  assert.equal(valueAt([tile], row(3), 12), "CPU: 2,500 threads to 2,500 threads, mean 2,500 threads (1,200 looks merged), at 0.000 s; all");
  assert.equal(valueAt([tile], row(3), 99), "CPU: not known");
  assert.equal(valueAt([], row(3), 0), "CPU: not known");
});

async function settled(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve));
}
