/** A flame graph on a canvas: callers above what they call. Click or Enter zooms, arrows walk, Esc shows all. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as format from "../format";
import type { StackTree } from "../generated/api";
import { useScheme, useWidth } from "../hooks";
import { search, type Tree } from "./tree";

const ROW = 18;
const MOST_ROWS = 400;
const LEAST_WIDTH = 0.5;
const FONT = '12px ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace';

interface Props {
  data: StackTree;
  tree: Tree;
  inverted: boolean;
  words: string;
  zoom: number;
  onZoom: (box: number) => void;
}

interface Drawn {
  x: number;
  width: number;
  box: number;
}

export function nameOf(data: StackTree, tree: Tree, box: number): string {
  const frame = data.frames[tree.frame[box] ?? -1];
  return frame ? (data.strings[frame[0]] ?? "") : "all";
}

export function Graph({ data, tree, inverted, words, zoom, onZoom }: Props) {
  const { place, width } = useWidth();
  const scheme = useScheme();
  const canvas = useRef<HTMLCanvasElement>(null);
  const rows = useRef<Drawn[][]>([]);
  const [cursor, setCursor] = useState(zoom);
  const [hover, setHover] = useState(-1);
  const found = useMemo(() => new Set(search(data, tree, words).boxes), [data, tree, words]);
  useEffect(() => {
    setCursor(zoom);
    setHover(-1);
  }, [tree, zoom]);
  useEffect(() => {
    if (canvas.current && width) rows.current = draw(canvas.current, { data, tree, zoom, found, width, cursor });
  }, [data, tree, zoom, found, width, scheme, cursor]);

  const at = (event: MouseEvent): number => {
    const row = rows.current[Math.floor(event.offsetY / ROW)] ?? [];
    return row.find((one) => event.offsetX >= one.x && event.offsetX < one.x + one.width)?.box ?? -1;
  };
  const key = (event: KeyboardEvent) => {
    const next = step(tree, cursor, event.key);
    if (event.key === "Enter") onZoom(cursor);
    else if (event.key === "Escape") onZoom(0);
    else if (next >= 0) setCursor(next);
    else return;
    event.preventDefault();
  };
  const told = hover >= 0 ? hover : cursor;
  return (
    <>
      <p class="now" role="status">
        <About data={data} tree={tree} box={told} inverted={inverted} />
      </p>
      <div
        ref={place}
        class="flame"
        role="application"
        aria-roledescription="flame graph"
        aria-label={`Flame graph of ${data.event}; arrow keys move, Enter zooms, Escape shows all; the same data as a table below`}
        tabIndex={0}
        onKeyDown={key}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          onMouseMove={(event) => setHover(at(event))}
          onMouseLeave={() => setHover(-1)}
          onClick={(event) => {
            const box = at(event);
            if (box >= 0) onZoom(box);
          }}
        />
      </div>
    </>
  );
}

/** The box that an arrow leads to, -1 for none. */
function step(tree: Tree, from: number, key: string): number {
  const above = tree.parent[from] ?? -1;
  if (key === "ArrowUp") return above;
  if (key === "ArrowDown") return tree.children[from]?.[0] ?? -1;
  const beside = tree.children[above] ?? [];
  const place = beside.indexOf(from);
  if (key === "ArrowRight") return beside[place + 1] ?? -1;
  if (key === "ArrowLeft") return beside[place - 1] ?? -1;
  return -1;
}

function About({ data, tree, box, inverted }: { data: StackTree; tree: Tree; box: number; inverted: boolean }) {
  const whole = (tree.total[0] ?? 0) || 1;
  const total = tree.total[box] ?? 0;
  const frame = data.frames[tree.frame[box] ?? -1];
  const where = frame ? (data.strings[frame[1]] || data.strings[frame[3]] || "") : data.window;
  return (
    <>
      <b>{nameOf(data, tree, box)}</b> {format.percent(total / whole)}, {format.measured(total, data.unit)}
      {frame && !inverted && `, itself ${format.percent((tree.own[box] ?? 0) / whole)}`}{" "}
      <span class="quiet">
        {where}
        {frame?.[2] ? `:${frame[2]}` : ""}
      </span>
    </>
  );
}

interface Scene {
  data: StackTree;
  tree: Tree;
  zoom: number;
  found: Set<number>;
  width: number;
  cursor: number;
}

function draw(canvas: HTMLCanvasElement, scene: Scene): Drawn[][] {
  const { tree, zoom, width } = scene;
  const context = canvas.getContext("2d");
  if (!context) return [];
  const depth = Math.min(MOST_ROWS, (tree.depth[zoom] ?? 0) + (tree.height[zoom] ?? 0) + 1);
  const scale = devicePixelRatio || 1;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${depth * ROW}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(depth * ROW * scale);
  context.scale(scale, scale);
  context.font = FONT;
  context.textBaseline = "middle";
  const paint = painter(context, scene);
  const rows: Drawn[][] = Array.from({ length: depth }, () => []);
  const put = (box: number, x: number, wide: number) => {
    const row = rows[tree.depth[box] ?? 0];
    if (!row) return;
    row.push({ x, width: wide, box });
    paint(box, x, wide);
  };
  for (let box = tree.parent[zoom] ?? -1; box >= 0; box = tree.parent[box] ?? -1) put(box, 0, width);
  const weight = tree.total[zoom] ?? 0;
  const perUnit = weight ? width / weight : 0;
  const left = tree.start[zoom] ?? 0;
  const waiting = [zoom];
  for (let box = waiting.pop(); box !== undefined; box = waiting.pop()) {
    const wide = (tree.total[box] ?? 0) * perUnit;
    if (wide < LEAST_WIDTH || (tree.depth[box] ?? 0) >= depth) continue;
    put(box, ((tree.start[box] ?? 0) - left) * perUnit, wide);
    waiting.push(...(tree.children[box] ?? []));
  }
  return rows;
}

type Paint = (box: number, x: number, wide: number) => void;

function painter(context: CanvasRenderingContext2D, { data, tree, found, cursor }: Scene): Paint {
  const style = getComputedStyle(document.documentElement);
  const ink = (name: string) => style.getPropertyValue(name).trim();
  const kinds = new Map(data.kinds.map((kind) => [kind.kind, ink(`--f-${kind.name}`)]));
  const [text, hit, onHit, all] = [ink("--ink"), ink("--f-hit"), ink("--f-hit-ink"), ink("--raised")];
  const letter = context.measureText("m").width;
  return (box, x, wide) => {
    const frame = data.frames[tree.frame[box] ?? -1];
    const y = (tree.depth[box] ?? 0) * ROW;
    const matched = found.has(box);
    context.fillStyle = matched ? hit : frame ? (kinds.get(frame[4]) ?? ink("--f-other")) : all;
    context.fillRect(x, y, Math.max(wide - 0.5, 0.4), ROW - 1);
    if (frame && !frame[5] && wide > 3) hatch(context, x, y, wide, text);
    if (box === cursor && cursor) {
      context.strokeStyle = text;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(wide - 2.5, 0.5), ROW - 3);
    }
    const letters = Math.floor((wide - 6) / letter);
    if (letters < 2) return;
    const name = nameOf(data, tree, box);
    context.fillStyle = matched ? onHit : text;
    context.fillText(name.length <= letters ? name : `${name.slice(0, letters - 1)}\u2026`, x + 3, y + ROW / 2);
  };
}

/** Names that are not known: not by colour alone. */
function hatch(context: CanvasRenderingContext2D, x: number, y: number, wide: number, ink: string) {
  context.save();
  context.beginPath();
  context.rect(x, y, wide - 1, ROW - 1);
  context.clip();
  context.globalAlpha = 0.2;
  context.strokeStyle = ink;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - ROW; at < x + wide; at += 6) {
    context.moveTo(at, y + ROW);
    context.lineTo(at + ROW, y);
  }
  context.stroke();
  context.restore();
}
