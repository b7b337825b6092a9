/** What part of the graph is seen, and how large; the graph's state in the address: ?trace=, ?step=, ?open= groups, ?at= the chosen
item, ?find=, and ?show=NAME:TYPE, an op to be found and chosen. */
import type { GraphItem, OpGraphView } from "../generated/api";

export interface Sight {
  /** Upper left corner, in the graph's pixels. */
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export const LEAST_SCALE = 0.02;
export const MOST_SCALE = 2.5;
/** Smallest size at which names can be read: what is larger than the place begins at it. */
export const LEGIBLE = 0.75;
/** Share of the step from which what is on its critical path is drawn so: less is on nearly every path. */
const ON_PATH = 0.002;

export const onPath = (graph: OpGraphView, ns: number): boolean => ns > 0 && ns >= ON_PATH * graph.step_ns;
const ROOM = 16;
/** No group is open: an empty word would be the usual ones. */
export const NONE = "g0";

/** As wide as fits, if it can be read so, from its top. */
export function first(graph: OpGraphView, size: Size): Sight {
  const wide = (size.width - 2 * ROOM) / Math.max(1, graph.width);
  const scale = Math.min(1, Math.max(LEGIBLE, wide));
  return { scale, x: graph.width / 2 - size.width / 2 / scale, y: -ROOM / scale };
}

export function whole(graph: OpGraphView, size: Size): Sight {
  return around({ x: 0, y: 0, width: graph.width, height: graph.height }, size, 1);
}

type Box = Pick<GraphItem, "x" | "y" | "width" | "height">;

/** A box in the middle, as large as fits. */
export function around(box: Box, size: Size, most = 1): Sight {
  const scale = clamp(Math.min((size.width - 2 * ROOM) / Math.max(1, box.width), (size.height - 2 * ROOM) / Math.max(1, box.height), most));
  return { scale, x: box.x + box.width / 2 - size.width / 2 / scale, y: box.y + box.height / 2 - size.height / 2 / scale };
}

/** As it is, but moved if a box is not in it. */
export function shown(sight: Sight, box: Box, size: Size): Sight {
  const scale = Math.max(sight.scale, LEGIBLE);
  const wide = size.width / scale;
  const high = size.height / scale;
  const inside = (from: number, long: number, at: number, most: number) => at >= from && at + Math.min(long, most) <= from + most;
  const fits = scale === sight.scale && inside(sight.x, box.width, box.x, wide) && inside(sight.y, box.height, box.y, high);
  if (fits) return sight;
  return { scale, x: box.x + Math.min(box.width, wide) / 2 - wide / 2, y: box.y + Math.min(box.height, high) / 2 - high / 2 };
}

export const clamp = (scale: number): number => Math.min(MOST_SCALE, Math.max(LEAST_SCALE, scale));

/** Larger or smaller, with a point of the place where it is. */
export function zoomed(sight: Sight, by: number, at: { x: number; y: number }): Sight {
  const scale = clamp(sight.scale * by);
  return { scale, x: sight.x + at.x / sight.scale - at.x / scale, y: sight.y + at.y / sight.scale - at.y / scale };
}

/** Never so far that nothing is seen. */
export function bounded(sight: Sight, graph: OpGraphView, size: Size): Sight {
  const wide = size.width / sight.scale;
  const high = size.height / sight.scale;
  return {
    scale: sight.scale,
    x: Math.min(graph.width - wide * 0.2, Math.max(-wide * 0.8, sight.x)),
    y: Math.min(graph.height - high * 0.2, Math.max(-high * 0.8, sight.y)),
  };
}

/** The item that an arrow key leads to: along the arrows, else the nearest in that direction. */
export function next(graph: OpGraphView, from: GraphItem, key: string): GraphItem | null {
  const by = new Map(graph.items.map((item) => [item.id, item]));
  if (key === "ArrowDown" || key === "ArrowUp") {
    const down = key === "ArrowDown";
    const along = graph.arrows.filter((arrow) => (down ? arrow.source : arrow.target) === from.id);
    along.sort((one, other) => other.path_ns - one.path_ns || other.bytes - one.bytes);
    const end = along.map((arrow) => by.get(down ? arrow.target : arrow.source)).find((item) => item);
    if (end) return end;
  }
  const centre = (item: GraphItem) => ({ x: item.x + item.width / 2, y: item.y + Math.min(item.height, 44) / 2 });
  const here = centre(from);
  let best: GraphItem | null = null;
  let least = Infinity;
  for (const item of graph.items) {
    const there = centre(item);
    const [dx, dy] = [there.x - here.x, there.y - here.y];
    const ahead = key === "ArrowDown" ? dy : key === "ArrowUp" ? -dy : key === "ArrowRight" ? dx : -dx;
    const aside = key === "ArrowDown" || key === "ArrowUp" ? Math.abs(dx) : Math.abs(dy);
    const far = ahead + 3 * aside;
    if (item.id !== from.id && ahead > 4 && far < least) [best, least] = [item, far];
  }
  return best;
}

/** The innermost of what is seen that holds an op or group: itself, or a folded group around it. */
export function seen(items: Map<string, GraphItem>, end: { id: string; inside: string[] }): GraphItem | null {
  for (const id of [end.id, ...end.inside]) {
    const item = items.get(id);
    if (item) return item;
  }
  return null;
}
