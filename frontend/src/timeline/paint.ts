/** Draws marks into one picture of the device's pixels. Rectangles are written as numbers into rows of pixels and copied
down, which is ten times as fast as asking the canvas for each; only text and outlines are drawn by it. */
import * as format from "../format";
import type { SpanName } from "../generated/api";
import { DRAWN } from "../generated/components";
import { drawArrows } from "./arrows";
import { drawCurve, type Ink, INKS } from "./curves";
import { CURVE, GROUP, LANE, topOf, yOf } from "./layout";
import type { Drawn, Scene } from "./scene";
import { covering, type Tile, WHOLE } from "./tiles";

const INK: Record<string, string> = {
  ...DRAWN,
  step: "--tl-step",
  op: "--c6",
  kernel: "--c3",
  copy: "--part-evaluation",
  memory: "--tl-memory",
  runtime: "--tl-runtime",
  wait: "--tl-wait",
  lost: "--high",
  other: "--tl-other",
};
const CATEGORIES = Object.keys(INK);
const OTHER = CATEGORIES.length - 1;
const SHADES = 16;
const LABEL_PX = 28;
const MOST_LABELS = 800;
const STEP_PX = 8;
/** Bits of a mark's name column: the name's number. */
const NAME = 0xffffff;

export function inkOf(category: string): string {
  return `var(${INK[category] ?? "--tl-other"})`;
}

/** Colours as numbers: for each category 16 shades from barely to fully busy, and the same faded. */
export class Palette {
  readonly ground: number;
  private readonly shades = new Uint32Array(CATEGORIES.length * SHADES * 2);
  private readonly dark = new Uint8Array(CATEGORIES.length);
  readonly curves: Map<string, Ink>;
  readonly plain: Ink;
  readonly css: Record<string, string>;

  constructor(style: CSSStyleDeclaration) {
    const read = (name: string) => style.getPropertyValue(name).trim();
    this.css = { ground: read("--ground"), ink: read("--ink"), quiet: read("--quiet"), line: read("--line"), accent: read("--accent") };
    const ground = rgb(this.css.ground ?? "#fff");
    this.ground = packed(ground);
    const ink = (name: string): Ink => {
      const line = rgb(read(name));
      return { area: packed(mix(ground, line, 0.3)), line: packed(line) };
    };
    this.curves = new Map(Object.entries(INKS).map(([key, name]) => [key, ink(name)]));
    this.plain = ink("--c8");
    CATEGORIES.forEach((category, at) => {
      const ink = rgb(read(INK[category] ?? "--tl-other"));
      this.dark[at] = 0.299 * ink[0] + 0.587 * ink[1] + 0.114 * ink[2] < 140 ? 1 : 0;
      for (let shade = 0; shade < SHADES; shade++) {
        const share = 0.3 + (0.7 * (shade + 1)) / SHADES;
        this.shades[(at * SHADES + shade) * 2] = packed(mix(ground, ink, share));
        this.shades[(at * SHADES + shade) * 2 + 1] = packed(mix(ground, ink, share * 0.2));
      }
    });
  }

  of(category: number, busy: number, faded: boolean): number {
    return this.shades[(category * SHADES + (busy >> 4)) * 2 + (faded ? 1 : 0)] ?? 0;
  }

  textOn(category: number, faded: boolean): string {
    if (faded) return this.css.quiet ?? "#555";
    return this.dark[category] ? "#fff" : "#111";
  }
}

type Rgb = [number, number, number];

function rgb(hex: string): Rgb {
  const long = hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex;
  const value = Number.parseInt(long.slice(1), 16) || 0;
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round((from[i] ?? 0) + ((to[i] ?? 0) - (from[i] ?? 0)) * share)) as Rgb;
}

function packed([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

interface Label {
  x0: number;
  x1: number;
  y: number;
  text: string;
  ink: string;
}

export class Painter {
  private readonly context: CanvasRenderingContext2D;
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private plain = new Uint32Array(0);
  private hatched = new Uint32Array(0);
  private categories = new Uint8Array(0);
  private named: SpanName[] | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    public palette: Palette,
  ) {
    this.context = canvas.getContext("2d", { alpha: false, willReadFrequently: true }) as CanvasRenderingContext2D;
  }

  size(width: number, height: number): void {
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.plain = new Uint32Array(width);
    this.hatched = new Uint32Array(width);
  }

  draw(scene: Scene, scale: number): Drawn {
    const drawn: Drawn = { marks: 0, spans: 0, merged: new Map(), looks: new Map(), arrows: 0, below: 0, missing: false };
    if (!this.image) return drawn;
    this.learn(scene.names);
    this.pixels.fill(this.palette.ground);
    const width = this.canvas.width;
    const height = this.canvas.height;
    const pinned = Math.round(scene.layout.pinned * scale);
    const labels: Label[] = [];
    const byGroup = new Map<number, Tile[]>();
    for (const row of scene.layout.rows) {
      const top = yOf(row, scene.scroll) * scale;
      const floor = row.pinned ? 0 : pinned;
      if (top + LANE * scale > height) drawn.below++;
      if (top > height || top + row.height * scale < 0) continue;
      for (let depth = 0; depth < row.lanes; depth++) {
        const y = Math.round(top + depth * LANE * scale);
        const tall = Math.round((LANE - 2) * scale);
        if (y > height || y + tall < floor) continue;
        const lane = row.track.first_lane + depth;
        const group = Math.floor(lane / scene.lanesPerTile);
        const tiles = byGroup.get(group) ?? covering(scene.tiles, scene.view, width / scale, group);
        byGroup.set(group, tiles);
        this.plain.fill(this.palette.ground);
        this.hatched.fill(this.palette.ground);
        const merged = this.lane(scene, tiles, lane % scene.lanesPerTile, y, y < floor ? [] : labels, drawn, scale);
        if (merged) drawn.merged.set(row.track.key, (drawn.merged.get(row.track.key) ?? 0) + merged);
        for (let line = Math.max(floor, y); line < Math.min(height, y + tall); line++) {
          this.pixels.set((line - y) % (3 * scale) < scale ? this.hatched : this.plain, line * width);
        }
      }
    }
    this.curves(scene, drawn, scale);
    this.context.putImageData(this.image, 0, 0);
    this.steps(scene, byGroup, scale);
    this.labels(labels, scale);
    this.bounds(scene, scale);
    this.marked(scene, drawn, scale);
    drawn.missing = [scene.tiles.ask(), scene.curves.ask()].includes(true);
    return drawn;
  }

  private curves(scene: Scene, drawn: Drawn, scale: number): void {
    const { width, height } = this.canvas;
    const into = { pixels: this.pixels, width, height };
    for (const row of scene.layout.curves) {
      const top = Math.round(yOf(row, scene.scroll) * scale);
      const tall = Math.round((CURVE - 4) * scale);
      const floor = row.pinned ? 0 : Math.round(scene.layout.pinned * scale);
      if (top > height || top + tall < floor) continue;
      const tiles = covering(scene.curves, scene.view, width / scale, WHOLE);
      const ink = this.palette.curves.get(row.series.key.replace(/^gpu\d+/, "gpu")) ?? this.palette.plain;
      drawn.looks.set(row.series.key, drawCurve(into, tiles, row, scene.view, { top, tall, floor, scale }, ink));
    }
  }

  /** One lane into the two rows of pixels; how many of its spans stand in marks with others. */
  private lane(scene: Scene, tiles: Tile[], index: number, y: number, labels: Label[], drawn: Drawn, scale: number): number {
    const { from, to } = scene.view;
    const width = this.canvas.width;
    const perNs = width / (to - from);
    let merged = 0;
    for (const tile of tiles) {
      const per = tile.unit * perNs;
      const offset = (tile.t0 - from) * perNs;
      const last = tile.first[index + 1] ?? 0;
      for (let at = tile.first[index] ?? 0; at < last; at++) {
        if ((tile.start[at] as number) < 0 && tile !== tiles[0]) continue; // drawn with the tile before
        const start = (tile.start[at] as number) * per + offset;
        if (start >= width) break;
        const end = start + (tile.dur[at] as number) * per;
        if (end < 0) continue;
        const x0 = Math.max(0, Math.floor(start));
        let x1 = Math.min(width, Math.max(x0 + 1, Math.round(end)));
        if (x1 - x0 > 3 * scale) x1 -= scale;
        const code = tile.name[at] as number;
        const count = tile.count[at] as number;
        const name = code & NAME;
        const category = this.categories[name] ?? OTHER;
        const faded = scene.matching !== null && !scene.matching[name];
        const colour = this.palette.of(category, code >>> 24, faded);
        this.plain.fill(colour, x0, x1);
        this.hatched.fill(count > 1 ? this.palette.of(category, 0, faded) : colour, x0, x1);
        drawn.marks++;
        drawn.spans += count;
        if (count > 1) merged += count;
        if (x1 - x0 > LABEL_PX * scale && labels.length < MOST_LABELS) {
          const text = scene.names[name]?.text ?? "";
          labels.push({ x0, x1, y, text: count > 1 ? `${format.count(count)}: ${text}` : text, ink: this.palette.textOn(category, faded) });
        }
      }
    }
    return merged;
  }

  private learn(names: SpanName[]): void {
    if (this.named === names && this.categories.length === names.length) return;
    this.named = names;
    this.categories = Uint8Array.from(names, (name) => {
      const at = CATEGORIES.indexOf(name.category);
      return at < 0 ? OTHER : at;
    });
  }

  private labels(labels: Label[], scale: number): void {
    const context = this.context;
    context.font = `${11 * scale}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    const letter = 6.1 * scale;
    for (const { x0, x1, y, text, ink } of labels) {
      const room = Math.floor((x1 - x0 - 6 * scale) / letter);
      context.fillStyle = ink;
      context.fillText(text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text, x0 + 3 * scale, y + ((LANE - 2) / 2) * scale);
    }
  }

  /** Where steps begin, through all lanes, where they are wide enough to be told apart. */
  private steps(scene: Scene, byGroup: Map<number, Tile[]>, scale: number): void {
    if (scene.steps === null) return;
    const group = Math.floor(scene.steps / scene.lanesPerTile);
    const index = scene.steps % scene.lanesPerTile;
    const perNs = this.canvas.width / (scene.view.to - scene.view.from);
    this.context.fillStyle = this.palette.css.quiet ?? "#555";
    this.context.globalAlpha = 0.45;
    const lines: number[] = [];
    let narrow = 0;
    for (const tile of byGroup.get(group) ?? covering(scene.tiles, scene.view, this.canvas.width / scale, group)) {
      for (let at = tile.first[index] ?? 0; at < (tile.first[index + 1] ?? 0); at++) {
        const x = Math.floor((tile.t0 + (tile.start[at] as number) * tile.unit - scene.view.from) * perNs);
        if (x < 0 || x > this.canvas.width) continue;
        if ((tile.count[at] as number) > 1 || (tile.dur[at] as number) * tile.unit * perNs < STEP_PX * scale) narrow += tile.count[at] as number;
        else lines.push(x);
      }
    }
    if (lines.length > narrow) for (const x of lines) this.context.fillRect(x, 0, scale, this.canvas.height);
    this.context.globalAlpha = 1;
  }

  /** By how much the times of a group may be off: as wide as that is at this zoom. */
  private bounds(scene: Scene, scale: number): void {
    const perNs = this.canvas.width / (scene.view.to - scene.view.from);
    const context = this.context;
    context.fillStyle = this.palette.css.ink ?? "#000";
    for (const head of scene.layout.heads) {
      const width = Math.round(2 * (head.bound ?? 0) * perNs);
      const y = Math.round((yOf(head, scene.scroll) + GROUP / 2) * scale);
      if (width < 2 || y < scene.layout.pinned * scale || y > this.canvas.height) continue;
      const x0 = Math.max(0, Math.round((this.canvas.width - width) / 2));
      const x1 = Math.min(this.canvas.width, x0 + width);
      context.fillRect(x0, y, x1 - x0, scale);
      for (const edge of [x0, x1 - scale]) context.fillRect(edge, y - 4 * scale, scale, 9 * scale);
    }
  }

  /** The chosen range and the chosen span. */
  private marked(scene: Scene, drawn: Drawn, scale: number): void {
    const perNs = this.canvas.width / (scene.view.to - scene.view.from);
    const x = (ns: number) => (ns - scene.view.from) * perNs;
    const context = this.context;
    const pinned = scene.layout.pinned * scale;
    if (pinned) {
      context.fillStyle = this.palette.css.quiet ?? "#555";
      context.fillRect(0, pinned - scale, this.canvas.width, scale);
    }
    if (scene.range) {
      context.globalAlpha = 0.16;
      context.fillStyle = this.palette.css.accent ?? "#06c";
      context.fillRect(x(scene.range.from), 0, x(scene.range.to) - x(scene.range.from), this.canvas.height);
      context.globalAlpha = 1;
      for (const edge of [scene.range.from, scene.range.to]) context.fillRect(x(edge), 0, scale, this.canvas.height);
    }
    if (scene.selected) {
      const place = topOf(scene.layout, scene.selected.lane);
      if (!place) return;
      const x0 = Math.max(-4 * scale, x(scene.selected.start));
      const x1 = Math.min(this.canvas.width + 4 * scale, x(scene.selected.start + scene.selected.dur));
      const y = yOf({ top: place.top, pinned: place.row.pinned }, scene.scroll) * scale;
      if (!place.row.pinned && y < pinned) return;
      const off = (place.row.track.bound_ns ?? 0) * perNs;
      if (off >= 1) {
        context.globalAlpha = 0.16;
        context.fillStyle = this.palette.css.ink ?? "#000";
        const { start, dur } = scene.selected;
        for (const edge of dur * perNs < 2 * off ? [[x(start) - off, x(start + dur) + off]] : [start, start + dur].map((ns) => [x(ns) - off, x(ns) + off])) {
          const [from = 0, to = 0] = edge;
          context.fillRect(from, pinned, to - from, this.canvas.height - pinned);
        }
        context.globalAlpha = 1;
      }
      context.lineWidth = 2 * scale;
      context.setLineDash(place.hidden ? [3 * scale, 3 * scale] : []);
      context.strokeStyle = this.palette.css.ink ?? "#000";
      context.strokeRect(x0 - scale, y - scale, Math.max(4 * scale, x1 - x0 + 2 * scale), LANE * scale);
      context.setLineDash([]);
      drawn.arrows = drawArrows(context, scene, x, scale, this.palette.css.ink ?? "#000");
    }
  }
}

/** The mark at a place of a lane, and how many spans it stands for. */
export function markAt(scene: Scene, pixels: number, lane: number, ns: number, slack: number): { row: number; name: number; count: number; dur: number } | null {
  const index = lane % scene.lanesPerTile;
  let best: { row: number; name: number; count: number; dur: number } | null = null;
  let nearest = slack;
  for (const tile of covering(scene.tiles, scene.view, pixels, Math.floor(lane / scene.lanesPerTile))) {
    for (let at = tile.first[index] ?? 0; at < (tile.first[index + 1] ?? 0); at++) {
      const start = tile.t0 + (tile.start[at] as number) * tile.unit;
      const dur = (tile.dur[at] as number) * tile.unit;
      const away = Math.max(0, start - ns, ns - start - dur);
      if (away > nearest || (away === nearest && best)) continue;
      nearest = away;
      best = { row: tile.row[at] as number, name: (tile.name[at] as number) & NAME, count: tile.count[at] as number, dur };
    }
  }
  return best;
}
