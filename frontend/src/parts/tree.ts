/** The tree that a flame graph draws, of a profile's stacks: functions merged, totals, places. Box 0 is all of it. */
import type { StackTree } from "../generated/api";

export interface Tree {
  /** Of each box the one above; callers stand before what they call. */
  parent: number[];
  /** An index into the frames; -1 for box 0. */
  frame: number[];
  own: number[];
  total: Float64Array;
  /** Where a box begins, in units of weight. */
  start: Float64Array;
  depth: Int32Array;
  /** Rows below it. */
  height: Int32Array;
  children: number[][];
}

/** Numbers of frames such that frames of one function share one, whatever their line. */
export function functionsOf(data: StackTree): Int32Array {
  const known = new Map<string, number>();
  return Int32Array.from(data.frames, ([name, file, , module]) => {
    const key = `${name} ${file} ${module}`;
    const found = known.get(key) ?? known.size;
    known.set(key, found);
    return found;
  });
}

/** `inverted`: the innermost frame first. */
export function treeOf(data: StackTree, inverted: boolean): Tree {
  const functions = functionsOf(data);
  const parent = [-1];
  const frame = [-1];
  const own = [0];
  const below: Map<number, number>[] = [new Map()];
  const box = (above: number, number: number): number => {
    const key = functions[number] ?? -1;
    const known = below[above]?.get(key);
    if (known !== undefined) return known;
    const made = parent.length;
    below[above]?.set(key, made);
    below.push(new Map());
    parent.push(above);
    frame.push(number);
    own.push(0);
    return made;
  };
  const places: number[] = [];
  data.own.forEach((weight, stack) => {
    let at = 0;
    if (!inverted) {
      const above = data.parent[stack] ?? -1;
      at = box(above < 0 ? 0 : (places[above] ?? 0), data.frame[stack] ?? 0);
      places.push(at);
    } else if (weight) {
      for (let step = stack; step >= 0; step = data.parent[step] ?? -1) at = box(at, data.frame[step] ?? 0);
    }
    own[at] = (own[at] ?? 0) + weight;
  });
  return laidOut(parent, frame, own, below);
}

function laidOut(parent: number[], frame: number[], own: number[], below: Map<number, number>[]): Tree {
  const count = parent.length;
  const total = Float64Array.from(own);
  const height = new Int32Array(count);
  for (let i = count - 1; i > 0; i--) {
    const above = parent[i] as number;
    total[above] = (total[above] as number) + (total[i] as number);
    height[above] = Math.max(height[above] as number, (height[i] as number) + 1);
  }
  const weight = (i: number) => total[i] as number;
  const children = below.map((of) => [...of.values()].sort((one, other) => weight(other) - weight(one)));
  const start = new Float64Array(count);
  const depth = new Int32Array(count);
  children.forEach((of, i) => {
    let at = start[i] as number;
    for (const child of of) {
      start[child] = at;
      depth[child] = (depth[i] as number) + 1;
      at += weight(child);
    }
  });
  return { parent, frame, own, total, start, depth, height, children };
}

/** Boxes that match, and the share of the weight with a match anywhere on its stack. */
export function search(data: StackTree, tree: Tree, words: string): { boxes: number[]; ratio: number } {
  const wanted = words.toLowerCase();
  if (!wanted) return { boxes: [], ratio: 0 };
  const names = data.strings.map((text) => text.toLowerCase().includes(wanted));
  const matches = data.frames.map(([name, file]) => Boolean(names[name] || names[file]));
  const inside = new Uint8Array(tree.parent.length);
  const boxes: number[] = [];
  let sum = 0;
  for (let i = 1; i < tree.parent.length; i++) {
    const above = inside[tree.parent[i] as number] as number;
    const own = matches[tree.frame[i] as number] ?? false;
    inside[i] = above || own ? 1 : 0;
    if (!own) continue;
    boxes.push(i);
    if (!above) sum += tree.total[i] as number;
  }
  return { boxes, ratio: tree.total[0] ? sum / tree.total[0] : 0 };
}

export interface FunctionRow {
  frame: number;
  own: number;
  total: number;
}

/** Functions by self weight; a total counts a function that calls itself once. */
export function functionRows(data: StackTree, tree: Tree, most: number): FunctionRow[] {
  const functions = functionsOf(data);
  const rows = new Map<number, FunctionRow>();
  for (let i = 1; i < tree.parent.length; i++) {
    const frame = tree.frame[i] as number;
    const key = functions[frame] as number;
    const row = rows.get(key) ?? { frame, own: 0, total: 0 };
    rows.set(key, row);
    row.own += tree.own[i] as number;
    let above = tree.parent[i] as number;
    while (above > 0 && functions[tree.frame[above] as number] !== key) above = tree.parent[above] as number;
    if (above <= 0) row.total += tree.total[i] as number;
  }
  return [...rows.values()]
    .filter((row) => row.own > 0)
    .sort((one, other) => other.own - one.own)
    .slice(0, most);
}
