/** The graph on a canvas: wheel and keys move and zoom, arrows go from box to box, Enter opens and folds. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import * as format from "../format";
import type { GraphDetail, GraphItem, OpGraphView } from "../generated/api";
import { useScheme } from "../hooks";
import { draw, type Link } from "./paint";
import { around, bounded, first, LEGIBLE, next, seen, shown, type Sight, type Size, whole, zoomed } from "./view";

interface Props {
  graph: OpGraphView;
  chosen: string;
  detail: GraphDetail | null;
  hits: Set<string>;
  choose: (id: string | null) => void;
  toggle: (id: string) => void;
}

const GLYPH = 26;
const DRAGGED = 4;

export function Stage({ graph, chosen, detail, hits, choose, toggle }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  const [sight, setSight] = useState<Sight | null>(null);
  const [hover, setHover] = useState("");
  const scheme = useScheme();
  const items = useMemo(() => new Map(graph.items.map((item) => [item.id, item])), [graph]);
  const kept = useRef<{ id: string; x: number; y: number } | null>(null);
  const drag = useRef<{ x: number; y: number; from: Sight; moved: boolean } | null>(null);

  useLayoutEffect(() => {
    if (!place.current) return;
    const observer = new ResizeObserver(([entry]) => setSize({ width: Math.floor(entry?.contentRect.width ?? 0), height: Math.floor(entry?.contentRect.height ?? 0) }));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  // What was opened or folded stays where it is; a new graph begins at its top.
  useLayoutEffect(() => {
    if (!size.width) return;
    const item = kept.current && items.get(kept.current.id);
    setSight((now) => {
      if (!now) return first(graph, size);
      const stays = item && kept.current ? { ...now, x: now.x + item.x - kept.current.x, y: now.y + item.y - kept.current.y } : now;
      return bounded(stays, graph, size);
    });
    kept.current = null;
  }, [graph, size.width > 0]);
  useEffect(() => {
    const item = items.get(chosen);
    if (item && size.width) setSight((now) => shown(now ?? first(graph, size), item, size));
  }, [chosen, graph, size.width > 0]);

  const links = useMemo(() => linksOf(detail, items), [detail, items]);
  const jumps = useMemo(() => jumpsOf(graph, items), [graph, items]);
  useEffect(() => {
    if (!canvas.current || !sight || !size.width) return;
    canvas.current.dataset.boxes = String(draw(canvas.current, size, { graph, sight, chosen, hover, hits, links, jumps }));
    canvas.current.dataset.state = "drawn";
    canvas.current.dataset.sight = [sight.x, sight.y, sight.scale].join(" ");
  }, [graph, sight, size, chosen, hover, hits, links, jumps, scheme]);

  const change = (made: (now: Sight) => Sight) => setSight((now) => now && bounded(made(now), graph, size));
  useEffect(() => {
    const stage = place.current;
    if (!stage) return;
    const wheel = (event: WheelEvent) => {
      const box = stage.getBoundingClientRect();
      const at = { x: event.clientX - box.left, y: event.clientY - box.top };
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        change((now) => zoomed(now, Math.exp(-event.deltaY / 300), at));
      } else if (document.activeElement === stage || event.shiftKey) {
        // a page that is scrolled past the graph goes on scrolling
        event.preventDefault();
        const [dx, dy] = event.shiftKey ? [event.deltaY || event.deltaX, 0] : [event.deltaX, event.deltaY];
        change((now) => ({ ...now, x: now.x + dx / now.scale, y: now.y + dy / now.scale }));
      }
    };
    stage.addEventListener("wheel", wheel, { passive: false });
    return () => stage.removeEventListener("wheel", wheel);
  }, [graph, size]);

  const at = (event: MouseEvent): { item: GraphItem | null; glyph: boolean } => {
    if (!sight) return { item: null, glyph: false };
    const [x, y] = [sight.x + event.offsetX / sight.scale, sight.y + event.offsetY / sight.scale];
    const item = [...graph.items].reverse().find((one) => x >= one.x && x <= one.x + one.width && y >= one.y && y <= one.y + one.height) ?? null;
    return { item, glyph: item !== null && item.kind !== "op" && x < item.x + GLYPH && y < item.y + GLYPH };
  };
  const openOrFold = (item: GraphItem) => {
    if (item.kind === "op") return;
    kept.current = { id: item.id, x: item.x, y: item.y };
    toggle(item.id);
  };
  const middle = { x: size.width / 2, y: size.height / 2 };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = items.get(chosen) ?? null;
    const word = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const moves: Record<string, () => void> = {
      w: () => change((now) => zoomed(now, 1.25, middle)),
      s: () => change((now) => zoomed(now, 0.8, middle)),
      a: () => change((now) => ({ ...now, x: now.x - (size.width * 0.15) / now.scale })),
      d: () => change((now) => ({ ...now, x: now.x + (size.width * 0.15) / now.scale })),
      PageUp: () => change((now) => ({ ...now, y: now.y - (size.height * 0.8) / now.scale })),
      PageDown: () => change((now) => ({ ...now, y: now.y + (size.height * 0.8) / now.scale })),
      "0": () => setSight(whole(graph, size)),
      f: () => item && setSight(around(item, size)),
      l: () => choose(alongPath(graph, chosen)),
      Enter: () => item && openOrFold(item),
      Escape: () => choose(null),
    };
    if (event.key.startsWith("Arrow")) {
      const found = item ? next(graph, item, event.key) : (graph.items.find((one) => !one.open) ?? null);
      if (found) choose(found.id);
    } else if (moves[word]) moves[word]?.();
    else return;
    event.preventDefault();
  };
  const hovered = items.get(hover);
  return (
    <div
      ref={place}
      class="og-stage"
      role="application"
      aria-roledescription="graph"
      aria-label={`Graph of ${format.plural(graph.ops, "op")}: arrow keys go along the arrows, Enter opens and folds a group, L follows the critical path; the longest and the path are lists below`}
      aria-describedby="og-keys"
      tabIndex={0}
      onKeyDown={key}
    >
      <canvas
        ref={canvas}
        class="og-canvas"
        aria-hidden="true"
        onPointerDown={(event) => {
          if (event.button || !sight) return;
          drag.current = { x: event.clientX, y: event.clientY, from: sight, moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const held = drag.current;
          if (!held) {
            setHover(at(event).item?.id ?? "");
            return;
          }
          const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
          held.moved ||= Math.abs(dx) + Math.abs(dy) > DRAGGED;
          if (held.moved) change(() => ({ ...held.from, x: held.from.x - dx / held.from.scale, y: held.from.y - dy / held.from.scale }));
        }}
        onPointerUp={(event) => {
          const held = drag.current;
          drag.current = null;
          if (!held || held.moved) return;
          const { item, glyph } = at(event);
          if (item && glyph) openOrFold(item);
          else choose(item?.id ?? null);
        }}
        onPointerLeave={() => setHover("")}
        onDblClick={(event) => {
          const { item, glyph } = at(event);
          if (item && !glyph) openOrFold(item);
        }}
      />
      <div class="og-zoom">
        <button aria-label="Zoom in" title="Zoom in (W)" onClick={() => change((now) => zoomed(now, 1.4, middle))}>
          +
        </button>
        <button aria-label="Zoom out" title="Zoom out (S)" onClick={() => change((now) => zoomed(now, 1 / 1.4, middle))}>
          −
        </button>
        <button title="All of it (0)" onClick={() => setSight(whole(graph, size))}>
          All
        </button>
        <button title={`So that names can be read, from the top`} onClick={() => setSight({ ...first(graph, size), scale: Math.max(LEGIBLE, first(graph, size).scale) })}>
          Top
        </button>
      </div>
      <p class="tl-tip og-tip" role="status">
        {hovered ? told(hovered) : items.get(chosen) ? told(items.get(chosen) as GraphItem) : "Nothing is chosen"}
      </p>
    </div>
  );
}

function told(item: GraphItem): string {
  const what = item.kind === "op" ? item.about : [item.about || item.kind, format.plural(item.ops, "op"), item.open ? "open" : "folded"].join(", ");
  const path = item.path_ns ? `; ${format.ns(item.path_ns)} on the critical path` : "";
  return `${item.title} (${what}): ${item.calls ? `${format.ns(item.own_ns)}, ${format.percent(item.ratio)} of op time` : "not recorded in this step"}${path}`;
}

/** The item of the path's next stretch, or of its first. */
function alongPath(graph: OpGraphView, chosen: string): string | null {
  const ids = graph.stretches.map((one) => one.id).filter(Boolean);
  return ids[ids.indexOf(chosen) + 1] ?? ids[0] ?? null;
}

function linksOf(detail: GraphDetail | null, items: Map<string, GraphItem>): Link[] {
  const mine = detail && seen(items, detail);
  if (!detail || !mine) return [];
  const found = new Map<string, Link>();
  for (const [ends, out] of [[detail.takes, false], [detail.gives, true]] as const)
    for (const end of ends) {
      const other = seen(items, end);
      if (other && other.id !== mine.id) found.set(`${other.id} ${out}`, out ? { from: mine, to: other } : { from: other, to: mine });
    }
  return [...found.values()];
}

/** Neighbours on the path from the first of which no arrow of the path leads to the second. */
function jumpsOf(graph: OpGraphView, items: Map<string, GraphItem>): Link[] {
  const ids = graph.stretches.map((one) => one.id).filter(Boolean);
  const ways = new Map<string, string[]>();
  for (const one of graph.arrows) if (one.path_ns > 0) ways.set(one.source, [...(ways.get(one.source) ?? []), one.target]);
  const leads = (from: string, to: string): boolean => {
    const reached = new Set([from]);
    for (const id of reached) for (const end of ways.get(id) ?? []) reached.add(end);
    return reached.has(to);
  };
  const around = (id: string): string[] => {
    const chain: string[] = [];
    for (let item = items.get(id); item; item = items.get(item.outer)) chain.unshift(item.id);
    return chain;
  };
  const found = new Map<string, Link>();
  ids.forEach((id, i) => {
    const [from, to] = [items.get(ids[i - 1] ?? ""), items.get(id)];
    if (!from || !to || from === to) return;
    const [one, other] = [around(from.id), around(to.id)];
    const fork = one.findIndex((each, at) => each !== other[at]);
    if (fork >= 0 && !leads(one[fork] ?? "", other[fork] ?? "")) found.set(`${from.id} ${to.id}`, { from, to });
  });
  return [...found.values()];
}
