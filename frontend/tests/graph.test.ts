/** What is seen of the graph of ops, and the tree of a flame graph. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GraphArrow, GraphItem, OpGraphView, StackTree } from "../src/generated/api";
import { around, bounded, first, LEAST_SCALE, LEGIBLE, MOST_SCALE, next, onPath, seen, shown, whole, zoomed } from "../src/opgraph/view";
import { functionRows, search, treeOf } from "../src/parts/tree";
import "./page";

const { handed } = await import("../src/opgraph/paint");

const item = (id: string, x: number, y: number): GraphItem => ({ id, x, y, width: 100, height: 40 }) as GraphItem;
const arrow = (source: string, target: string, bytes = 0): GraphArrow => ({ source, target, bytes, path_ns: 0, tensors: 1, text: "", unknown: 0 }) as GraphArrow;
const graph = (items: GraphItem[], arrows: GraphArrow[] = []): OpGraphView => ({ items, arrows, width: 1000, height: 4000, step_ns: 1e6 }) as OpGraphView;
const SIZE = { width: 800, height: 600 };

test("a graph of any size is seen at a scale that there is", () => {
  for (const [width, height] of [[0, 0], [1, 1], [1e9, 1e9], [1000, 10]] as const) {
    const one = { ...graph([]), width, height };
    for (const size of [SIZE, { width: 0, height: 0 }]) {
      for (const sight of [first(one, size), whole(one, size), around({ x: 0, y: 0, width, height }, size)]) {
        assert.ok(sight.scale >= LEAST_SCALE && sight.scale <= MOST_SCALE);
        assert.ok(Number.isFinite(sight.x) && Number.isFinite(sight.y));
      }
    }
  }
  assert.equal(first({ ...graph([]), width: 1e6 }, SIZE).scale, LEGIBLE);
});

test("a zoom leaves the point under the pointer where it is", () => {
  const sight = { x: 10, y: 20, scale: 1 };
  const at = { x: 400, y: 100 };
  const near = zoomed(sight, 2, at);
  assert.equal(near.x + at.x / near.scale, sight.x + at.x);
  assert.equal(near.y + at.y / near.scale, sight.y + at.y);
  assert.equal(zoomed(sight, 1e9, at).scale, MOST_SCALE);
});

test("some of the graph is always seen", () => {
  const far = bounded({ x: 1e9, y: -1e9, scale: 1 }, graph([]), SIZE);
  assert.deepEqual(far, { x: 840, y: -480, scale: 1 });
});

test("what is in sight does not move", () => {
  const sight = { x: 0, y: 0, scale: 1 };
  assert.equal(shown(sight, item("a", 10, 10), SIZE), sight);
  const moved = shown(sight, item("a", 5000, 10), SIZE);
  assert.equal(moved.x + SIZE.width / 2, 5050);
});

test("arrow keys follow arrows, the heaviest first, else lead to the nearest box", () => {
  const [a, b, c, d] = [item("a", 0, 0), item("b", 0, 100), item("c", 300, 100), item("d", 200, 0)];
  const all = graph([a, b, c, d], [arrow("a", "b", 1), arrow("a", "c", 2), arrow("a", "outside", 9)]);
  assert.equal(next(all, a, "ArrowDown")?.id, "c");
  assert.equal(next(all, b, "ArrowUp")?.id, "a");
  assert.equal(next(all, a, "ArrowRight")?.id, "d");
  assert.equal(next(all, a, "ArrowLeft"), null);
  assert.equal(next(graph([a]), a, "ArrowDown"), null);
});

test("what lies in a folded group is seen as the group", () => {
  const items = new Map([["g", item("g", 0, 0)]]);
  assert.equal(seen(items, { id: "op", inside: ["h", "g"] })?.id, "g");
  assert.equal(seen(items, { id: "op", inside: [] }), null);
  assert.ok(!onPath(graph([]), 0) && onPath(graph([]), 2000) && !onPath(graph([]), 1999));
});

test("an arrow says what it hands over", () => {
  assert.equal(handed(arrow("a", "b", 2048)), "1 tensor · 2 KiB");
  assert.equal(handed({ ...arrow("a", "b", 2048), unknown: 1, tensors: 3 }), "3 tensors · at least 2 KiB");
  assert.equal(handed(arrow("a", "b")), "1 tensor");
});

/** main calls f and g, f calls itself: stacks with their own weights. */
const STACKS = {
  strings: ["main", "f", "g", "a.py"],
  frames: [[0, 3, 1, 0, 0, 0], [1, 3, 2, 0, 0, 0], [2, 3, 3, 0, 0, 0], [1, 3, 9, 0, 0, 0]],
  parent: [-1, 0, 1, 0],
  frame: [0, 1, 3, 2],
  own: [1, 2, 3, 4],
} as unknown as StackTree;

test("a total is what a box and all below it weigh, children stand within their parents", () => {
  for (const inverted of [false, true]) {
    const tree = treeOf(STACKS, inverted);
    assert.equal(tree.total[0], 10);
    tree.children.forEach((of, at) => {
      const inside = of.reduce((sum, child) => sum + (tree.total[child] ?? 0), 0);
      assert.equal(tree.total[at], (tree.own[at] ?? 0) + inside);
      for (const child of of) assert.ok((tree.start[child] ?? 0) + (tree.total[child] ?? 0) <= (tree.start[at] ?? 0) + (tree.total[at] ?? 0));
    });
  }
});

test("a function that calls itself has its total once, whatever its lines", () => {
  const tree = treeOf(STACKS, false);
  const rows = functionRows(STACKS, tree, 10).map((row) => [STACKS.strings[STACKS.frames[row.frame]?.[0] ?? 0], row.own, row.total]);
  assert.deepEqual(rows, [["f", 5, 5], ["g", 4, 4], ["main", 1, 10]]);
  assert.equal(functionRows(STACKS, tree, 1).length, 1);
});

test("a search counts what matches once", () => {
  const tree = treeOf(STACKS, false);
  assert.equal(search(STACKS, tree, "F").ratio, 0.5);
  assert.equal(search(STACKS, tree, "a.py").ratio, 1);
  assert.deepEqual(search(STACKS, tree, ""), { boxes: [], ratio: 0 });
  assert.deepEqual(search(STACKS, tree, "(.*"), { boxes: [], ratio: 0 });
});

test("no stacks make one empty box", () => {
  const none = { ...STACKS, frames: [], parent: [], frame: [], own: [], strings: [] } as StackTree;
  const tree = treeOf(none, true);
  assert.deepEqual([...tree.total], [0]);
  assert.equal(search(none, tree, "f").ratio, 0);
  assert.deepEqual(functionRows(none, tree, 5), []);
});
