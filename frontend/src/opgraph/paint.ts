/** Draws what is seen of the graph: boxes coloured by their share of the time, arrows as wide as what they hand over is large. */
import * as format from "../format";
import type { GraphArrow, GraphItem, OpGraphView } from "../generated/api";
import { onPath, type Sight, type Size } from "./view";

/** Shares of the op time from which a box has each colour; they rise in lightness too, for who does not see the hue. */
export const BINS = [0, 0.01, 0.03, 0.1, 0.3];
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const TEXT_FROM = 0.4;
const LABELS_FROM = 0.6;

export const binOf = (ratio: number): number => BINS.reduce((bin, from, at) => (ratio >= from ? at : bin), 0);

export interface Link {
  from: GraphItem;
  to: GraphItem;
}

export interface Scene {
  graph: OpGraphView;
  sight: Sight;
  chosen: string;
  hover: string;
  hits: Set<string>;
  /** Of the chosen item, to and from what is seen. */
  links: Link[];
  /** Hand-overs of the critical path where nothing is handed over that the graph knows. */
  jumps: Link[];
}

interface Inks {
  ink: string;
  quiet: string;
  line: string;
  ground: string;
  raised: string;
  path: string;
  hit: string;
  fills: string[];
  texts: string[];
}

function inks(): Inks {
  const style = getComputedStyle(document.documentElement);
  const ink = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: ink("--ink"),
    quiet: ink("--quiet"),
    line: ink("--line"),
    ground: ink("--ground"),
    raised: ink("--raised"),
    path: ink("--og-path"),
    hit: ink("--og-hit"),
    fills: BINS.map((_, bin) => ink(`--og-${bin}`)),
    texts: BINS.map((_, bin) => ink(`--og-${bin}-ink`)),
  };
}

export function draw(canvas: HTMLCanvasElement, size: Size, scene: Scene): number {
  const context = canvas.getContext("2d");
  if (!context) return 0;
  const dense = devicePixelRatio || 1;
  if (canvas.width !== Math.round(size.width * dense) || canvas.height !== Math.round(size.height * dense)) {
    canvas.width = Math.round(size.width * dense);
    canvas.height = Math.round(size.height * dense);
  }
  const { graph, sight } = scene;
  const colours = inks();
  context.setTransform(dense, 0, 0, dense, 0, 0);
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, size.width, size.height);
  context.setTransform(dense * sight.scale, 0, 0, dense * sight.scale, -sight.x * sight.scale * dense, -sight.y * sight.scale * dense);
  const left = sight.x - 40;
  const top = sight.y - 40;
  const right = sight.x + size.width / sight.scale + 40;
  const bottom = sight.y + size.height / sight.scale + 40;
  const inside = (x: number, y: number, width: number, height: number) => x < right && x + width > left && y < bottom && y + height > top;
  const boxes = graph.items.filter((item) => inside(item.x, item.y, item.width, item.height));
  for (const item of boxes) if (item.open) group(context, item, scene, colours);
  const arrows = graph.arrows.filter((one) => {
    const [xs, ys] = [one.points.filter((_, i) => i % 2 === 0), one.points.filter((_, i) => i % 2)];
    const [x, y] = [Math.min(...xs), Math.min(...ys)];
    return inside(x, y, Math.max(...xs) - x, Math.max(...ys) - y);
  });
  const heavies = new Set(graph.items.filter((item) => onPath(graph, item.path_ns)).map((item) => item.id));
  const heavy = (one: GraphArrow) => one.path_ns > 0 && heavies.has(one.source) && heavies.has(one.target);
  arrows.sort((one, other) => Number(heavy(one)) - Number(heavy(other)));
  const linked = new Set(scene.links.map((link) => `${link.from.id} ${link.to.id}`));
  for (const one of arrows) arrow(context, one, heavy(one) ? colours.path : linked.has(`${one.source} ${one.target}`) ? colours.ink : "", scene, colours);
  const known = new Set(graph.arrows.map((one) => `${one.source} ${one.target}`));
  for (const link of scene.links) if (!known.has(`${link.from.id} ${link.to.id}`)) curve(context, link, colours.ink, 1.6);
  context.setLineDash([3, 5]);
  for (const jump of scene.jumps) curve(context, jump, colours.path, 2);
  context.setLineDash([]);
  for (const item of boxes) if (!item.open) box(context, item, scene, colours);
  if (sight.scale >= LABELS_FROM) labels(context, arrows, graph, heavy, colours);
  return boxes.length;
}

/** A line that is still seen where all is small. */
const thick = (usual: number, least: number, { sight }: Pick<Scene, "sight">): number => Math.max(usual, least / sight.scale);

function rounded(context: CanvasRenderingContext2D, item: GraphItem, more = 0) {
  context.beginPath();
  context.roundRect(item.x - more, item.y - more, item.width + 2 * more, item.height + 2 * more, item.kind === "op" ? 4 + more : 9 + more);
}

function outline(context: CanvasRenderingContext2D, item: GraphItem, { chosen, hover, hits, sight }: Scene, colours: Inks) {
  if (hits.has(item.id)) {
    rounded(context, item, 4);
    context.lineWidth = 4;
    context.strokeStyle = colours.hit;
    context.stroke();
  }
  if (item.id === chosen || item.id === hover) {
    rounded(context, item, 5);
    context.lineWidth = (item.id === chosen ? 2.5 : 1) / Math.min(1, sight.scale);
    context.strokeStyle = colours.ink;
    context.stroke();
  }
}

function group(context: CanvasRenderingContext2D, item: GraphItem, scene: Scene, colours: Inks) {
  rounded(context, item);
  context.fillStyle = colours.raised;
  context.fill();
  context.lineWidth = thick(1, 0.7, scene);
  context.strokeStyle = colours.line;
  context.stroke();
  outline(context, item, scene, colours);
  if (scene.sight.scale < TEXT_FROM / 2) return;
  const about = [item.about, `${format.ns(item.own_ns)} · ${format.percent(item.ratio)}`].filter(Boolean).join(" · ");
  context.textBaseline = "middle";
  context.font = `12px ${FONT}`;
  const wide = Math.min(context.measureText(about).width, item.width * 0.6);
  context.fillStyle = colours.ink;
  context.font = `600 12px ${FONT}`;
  const title = cut(context, `\u25be ${item.title}`, item.width - wide - 28);
  context.fillText(title, item.x + 10, item.y + 15);
  const used = context.measureText(title).width;
  context.fillStyle = colours.quiet;
  context.font = `12px ${FONT}`;
  context.fillText(cut(context, about, item.width - 28 - used), item.x + 20 + used, item.y + 15);
}

function box(context: CanvasRenderingContext2D, item: GraphItem, scene: Scene, colours: Inks) {
  const bin = binOf(item.ratio);
  const heavy = onPath(scene.graph, item.path_ns);
  if (item.kind !== "op") {
    // a folded group is a stack
    rounded(context, { ...item, x: item.x + 4, y: item.y + 4 });
    context.fillStyle = colours.raised;
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = colours.quiet;
    context.stroke();
  }
  rounded(context, item);
  context.fillStyle = colours.fills[bin] ?? colours.raised;
  context.fill();
  context.lineWidth = heavy ? thick(3.5, 1.8, scene) : thick(1, 0.7, scene);
  context.strokeStyle = heavy ? colours.path : colours.quiet;
  context.stroke();
  outline(context, item, scene, colours);
  if (scene.sight.scale < TEXT_FROM) return;
  const folded = item.kind !== "op";
  context.fillStyle = colours.texts[bin] ?? colours.ink;
  context.textBaseline = "middle";
  context.font = `600 12.5px ${FONT}`;
  context.fillText(cut(context, folded ? `\u25b8 ${item.title}` : item.title, item.width - 18), item.x + 9, item.y + 14);
  context.font = `12px ${FONT}`;
  const time = item.calls ? `${format.ns(item.own_ns)} · ${format.percent(item.ratio)}` : "not recorded";
  context.fillText(time, item.x + 9, item.y + 31);
  const used = context.measureText(time).width;
  const about = folded ? [item.about, format.plural(item.ops, "op")].filter(Boolean).join(", ") : item.about.replace(/^_Mkl(?:Native)?/, "");
  context.textAlign = "right";
  context.fillText(cut(context, about, item.width - used - 30), item.x + item.width - 9, item.y + 31);
  context.textAlign = "left";
}

/** A text that is not wider than its place. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (width < 12) return "";
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}\u2026`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}\u2026` : "";
}

const wideness = (bytes: number): number => (bytes < 1024 ? 1 : Math.min(5, 1 + (Math.log2(bytes) - 10) / 4.5));

/** `ink`: of one that stands out; empty: of the others. */
function arrow(context: CanvasRenderingContext2D, one: GraphArrow, ink: string, scene: Scene, colours: Inks) {
  const points = one.points;
  const wide = thick(wideness(one.bytes) + (ink ? 1.5 : 0), ink ? 1.5 : 0.5, scene);
  context.strokeStyle = context.fillStyle = ink || colours.quiet;
  context.globalAlpha = ink ? 1 : 0.75;
  context.lineWidth = wide;
  context.setLineDash(one.back ? [7, 4] : []);
  context.beginPath();
  const at = (i: number): [number, number] => [points[2 * i] ?? 0, points[2 * i + 1] ?? 0];
  const last = points.length / 2 - 1;
  const head = 5 + wide;
  const [tipX, tipY] = at(last);
  const before = at(last - 1)[1] < tipY ? -1 : 1;
  context.moveTo(...at(0));
  for (let i = 1; i <= last; i += 1) {
    const [x0, y0] = at(i - 1);
    const [x1, end] = at(i);
    const y1 = i === last ? end + before * head * 0.8 : end;
    context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
  }
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(tipX, tipY);
  context.lineTo(tipX - head * 0.6, tipY + before * head);
  context.lineTo(tipX + head * 0.6, tipY + before * head);
  context.fill();
  context.globalAlpha = 1;
}

/** From one box to another, wherever they lie. */
function curve(context: CanvasRenderingContext2D, { from, to }: Link, ink: string, wide: number) {
  const down = to.y >= from.y;
  const [x0, y0] = [from.x + from.width / 2, down ? from.y + (from.open ? 26 : from.height) : from.y];
  const [x1, y1] = [to.x + to.width / 2, down ? to.y : to.y + to.height];
  const bend = Math.max(30, Math.abs(y1 - y0) / 2) * (down ? 1 : -1);
  context.strokeStyle = context.fillStyle = ink;
  context.lineWidth = wide;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  context.stroke();
  const head = down ? -8 : 8;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 4.5, y1 + head);
  context.lineTo(x1 + 4.5, y1 + head);
  context.fill();
}

/** What an arrow hands over, in words. */
export function handed(arrow: GraphArrow): string {
  const size = arrow.bytes ? format.bytes(arrow.bytes) : "";
  const what = arrow.text || format.plural(arrow.tensors, "tensor");
  return [what, size && (arrow.unknown ? `at least ${size}` : size)].filter(Boolean).join(" · ");
}

interface Place {
  x: number;
  y: number;
  width: number;
}

/** Words at arrows, the largest first, where there is room. */
function labels(context: CanvasRenderingContext2D, arrows: GraphArrow[], graph: OpGraphView, heavy: (one: GraphArrow) => boolean, colours: Inks) {
  context.font = `11px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const taken: Place[] = [];
  const bars = graph.items.filter((item) => !item.open);
  for (const one of [...arrows].sort((a, b) => b.path_ns - a.path_ns || b.bytes - a.bytes)) {
    const end = one.points.length - 1;
    const [x0, y0, x1, y1] = [one.points[end - 3] ?? 0, one.points[end - 2] ?? 0, one.points[end - 1] ?? 0, one.points[end] ?? 0];
    const text = handed(one);
    const place = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, width: context.measureText(text).width + 8 };
    const free = (other: Place) => Math.abs(other.x - place.x) > (other.width + place.width) / 2 || Math.abs(other.y - place.y) > 15;
    const clear = (item: GraphItem) =>
      item.x > place.x + place.width / 2 || item.x + item.width < place.x - place.width / 2 || item.y > place.y + 8 || item.y + item.height < place.y - 8;
    if (!taken.every(free) || !bars.every(clear)) continue;
    taken.push(place);
    context.fillStyle = colours.ground;
    context.globalAlpha = 0.85;
    context.fillRect(place.x - place.width / 2, place.y - 7.5, place.width, 15);
    context.globalAlpha = 1;
    context.fillStyle = heavy(one) ? colours.path : colours.quiet;
    context.fillText(text, place.x, place.y + 0.5);
  }
  context.textAlign = "left";
}
