/** The lanes: labels beside one canvas, moved by mouse, wheel and keys. What is shown stands in the address; while it
moves it is kept here, so that nothing but the picture is made anew. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api";
import { useConnection } from "../connection";
import * as format from "../format";
import type { Span, SpanDetail, SpanName, Timeline } from "../generated/api";
import { change } from "../router";
import { type Curves, decodeCurves, valueAt } from "./curves";
import { type Choose, keysOf } from "./keys";
import { Labels } from "./labels";
import { curveAt, GROUP, LANE, laneAt, layout, topOf } from "./layout";
import { markAt, Painter, Palette } from "./paint";
import { drawRuler } from "./ruler";
import type { Drawn, Scene } from "./scene";
import { bounded, seconds, selectionOf, viewOf, whole, wordsOf } from "./state";
import { covering, decode, type Tile, Tiles, WHOLE } from "./tiles";
import type { View } from "./view";

const RULER = 22;
const CLICK_PX = 4;
const SLACK_PX = 3;
const SETTLE_MS = 250;
/** Of the window's height. */
const MOST_PINNED = 0.35;

interface Props {
  path: string;
  timeline: Timeline;
  names: SpanName[];
  query: URLSearchParams;
  detail: SpanDetail | null;
  choose: Choose;
  failed: (problem: Problem) => void;
  /** All that is in sight is drawn. */
  seen: () => void;
}

interface Tip {
  x: number;
  y: number;
  text: string;
}

export function Lanes({ path, timeline, names, query, detail, choose, failed, seen }: Props) {
  const stage = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const view = useRef<View>(bounded(viewOf(query) ?? whole(timeline), timeline));
  const range = useRef<View | null>(selectionOf(query));
  const painter = useRef<Painter | null>(null);
  const pending = useRef({ frame: 0, settle: 0, tell: 0 });
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [tip, setTip] = useState<Tip | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });

  const open = query.get("open") ?? "";
  const fold = query.get("fold") ?? "";
  const pin = query.get("pin") ?? "";
  const first = query.get("first") ?? "";
  const made = useMemo(() => {
    const words = { open: wordsOf(query, "open"), fold: wordsOf(query, "fold"), pin: wordsOf(query, "pin") };
    return layout(timeline.tracks, timeline.series, words, innerHeight * MOST_PINNED, first);
  }, [timeline, open, fold, pin, first]);
  const words = query.get("find") ?? "";
  const matching = useMemo(() => sought(names, words), [names, words]);

  const [tiles, curves] = useMemo(() => {
    const told = (problem: Problem | null) => (problem ? failed(problem) : redraw());
    return [
      new Tiles<Tile>(`${path}/timeline/tile`, timeline.build, decode, told),
      new Tiles<Curves>(`${path}/timeline/curves`, timeline.build, decodeCurves, told),
    ] as const;
  }, [path, timeline.build]);
  useEffect(
    () => () => {
      tiles.stop();
      curves.stop();
    },
    [tiles],
  );

  const { returned } = useConnection();
  useEffect(() => {
    tiles.again();
    curves.again();
    redraw();
  }, [returned]);

  const scene: Scene = {
    view: view.current,
    layout: made,
    scroll: scroller.current?.scrollTop ?? 0,
    names,
    matching,
    tiles,
    curves,
    lanesPerTile: timeline.lanes_per_tile,
    steps: timeline.tracks[0]?.kind === "steps" ? 0 : null,
    selected: detail && placeOf(detail.span),
    links: detail?.links.map((link) => ({ out: link.out, to: placeOf(link.span) })) ?? [],
    range: range.current,
  };
  const now = useRef(scene);
  now.current = scene;

  const paint = () => {
    cancelAnimationFrame(pending.current.frame);
    pending.current.frame = 0;
    const place = canvas.current;
    if (!place || !painter.current || !size.width) return;
    const scale = Math.max(1, Math.round(devicePixelRatio));
    const began = performance.now();
    const current = { ...now.current, view: view.current, range: range.current, scroll: scroller.current?.scrollTop ?? 0 };
    painter.current.size(size.width * scale, size.height * scale);
    const done = painter.current.draw(current, scale);
    place.dataset.ms = (performance.now() - began).toFixed(2);
    place.dataset.marks = String(done.marks);
    place.dataset.arrows = String(done.arrows);
    place.dataset.state = done.missing ? "loading" : "drawn";
    if (!done.missing) seen();
    if (ruler.current) drawRuler(ruler.current, view.current, size.width, RULER, scale, painter.current.palette.css);
    clearTimeout(pending.current.tell);
    pending.current.tell = setTimeout(() => setDrawn(done), 120);
  };
  const painting = useRef(paint);
  painting.current = paint;
  const redraw = () => {
    pending.current.frame ||= requestAnimationFrame(() => painting.current());
  };

  useLayoutEffect(() => {
    if (!canvas.current || !stage.current) return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const style = getComputedStyle(document.documentElement);
    painter.current = new Painter(canvas.current, new Palette(style));
    const recolour = () => {
      if (painter.current) painter.current.palette = new Palette(style);
      redraw();
    };
    dark.addEventListener("change", recolour);
    const place = stage.current;
    const measure = () => {
      const box = place.getBoundingClientRect();
      const [width, height] = [Math.floor(box.width), Math.floor(box.height)];
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(place);
    return () => {
      dark.removeEventListener("change", recolour);
      observer.disconnect();
      cancelAnimationFrame(pending.current.frame);
      clearTimeout(pending.current.settle);
      clearTimeout(pending.current.tell);
      pending.current.frame = 0;
    };
  }, []);

  const moved = (next: View) => {
    view.current = bounded(next, timeline);
    setTip(null);
    redraw();
    clearTimeout(pending.current.settle);
    pending.current.settle = setTimeout(() => change({ from: seconds(view.current.from), to: seconds(view.current.to) }, false), SETTLE_MS);
  };
  const zoom = (factor: number, at = (view.current.from + view.current.to) / 2) => {
    const { from, to } = view.current;
    moved({ from: at - (at - from) * factor, to: at + (to - at) * factor });
  };
  const pan = (share: number) => {
    const by = (view.current.to - view.current.from) * share;
    moved({ from: view.current.from + by, to: view.current.to + by });
  };
  const timeAt = (x: number) => view.current.from + (x / Math.max(1, size.width)) * (view.current.to - view.current.from);

  const from = query.get("from");
  const to = query.get("to");
  useEffect(() => {
    clearTimeout(pending.current.settle); // another address says what is shown
    view.current = bounded(viewOf(query) ?? whole(timeline), timeline);
    setTip(null);
    redraw();
  }, [from, to, timeline.build]);
  const sel = query.get("sel");
  useEffect(() => {
    range.current = selectionOf(query);
    redraw();
  }, [sel]);
  useEffect(redraw, [names, names.length, matching, made, detail]);
  useEffect(() => setTip(null), [size, made, detail]);
  // The lanes move away from under a pointer that rests: no event says that it has left them.
  useEffect(() => {
    if (!tip) return;
    const left = (event: Event) => event.target !== canvas.current && setTip(null);
    const gone = () => setTip(null);
    document.addEventListener("pointermove", left);
    addEventListener("scroll", gone, true);
    addEventListener("blur", gone);
    return () => {
      document.removeEventListener("pointermove", left);
      removeEventListener("scroll", gone, true);
      removeEventListener("blur", gone);
    };
  }, [tip]);
  useLayoutEffect(() => painting.current(), [size]); // at once: what is missing is asked for

  useEffect(() => {
    if (first && scroller.current) scroller.current.scrollTop = 0;
  }, [first]);
  // The chosen span is brought into sight, once.
  const shown = detail && `${detail.span.lane} ${detail.span.start_ns}`;
  useEffect(() => {
    if (!detail || !scroller.current) return;
    const place = topOf(made, detail.span.lane);
    if (!place || place.row.pinned) return;
    const { scrollTop, clientHeight } = scroller.current;
    if (place.top < scrollTop + GROUP + made.pinned || place.top + LANE > scrollTop + clientHeight) scroller.current.scrollTop = place.top - clientHeight / 2;
  }, [shown, made]);

  useEffect(() => {
    const place = stage.current;
    if (!place) return;
    const onWheel = (event: WheelEvent) => {
      const x = event.clientX - place.getBoundingClientRect().left;
      if (event.ctrlKey || event.metaKey) zoomRef.current(Math.exp(event.deltaY * 0.002), x);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) panRef.current((event.deltaX || event.deltaY) / 800);
      else return;
      event.preventDefault();
    };
    place.addEventListener("wheel", onWheel, { passive: false });
    return () => place.removeEventListener("wheel", onWheel);
  }, []);
  const zoomRef = useRef((_: number, __: number) => {});
  zoomRef.current = (factor, x) => zoom(factor, timeAt(x));
  const panRef = useRef(pan);
  panRef.current = pan;

  const drag = useRef<{ x: number; view: View; pans: boolean; far: boolean } | null>(null);
  const onDown = (event: PointerEvent, pans: boolean) => {
    if (event.button > 1) return;
    drag.current = { x: event.offsetX, view: { ...view.current }, pans: pans || event.shiftKey || event.button === 1, far: false };
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent) => {
    const held = drag.current;
    if (!held) return point(event);
    if (Math.abs(event.offsetX - held.x) > CLICK_PX) held.far = true;
    if (!held.far) return;
    if (held.pans) {
      const by = ((held.x - event.offsetX) / Math.max(1, size.width)) * (held.view.to - held.view.from);
      moved({ from: held.view.from + by, to: held.view.to + by });
    } else {
      const ends = [timeAt(held.x), timeAt(event.offsetX)].sort((a, b) => a - b);
      range.current = { from: ends[0] ?? 0, to: ends[1] ?? 0 };
      redraw();
    }
  };
  const onUp = (event: PointerEvent, picks: boolean) => {
    const held = drag.current;
    drag.current = null;
    if (!held) return;
    if (held.far && !held.pans && range.current) change({ sel: `${seconds(range.current.from)}~${seconds(range.current.to)}` });
    if (held.far || !picks) return;
    setTip(null);
    const hit = under(event);
    if (hit) choose(hit.lane, { row: hit.mark.row }, hit.mark.count);
    else change({ span: null, sel: null });
  };
  const under = (event: PointerEvent) => {
    const lane = laneAt(made, event.offsetY, scroller.current?.scrollTop ?? 0);
    if (lane === null) return null;
    const slack = (SLACK_PX * (view.current.to - view.current.from)) / Math.max(1, size.width);
    const mark = markAt({ ...now.current, view: view.current }, size.width, lane, timeAt(event.offsetX), slack);
    return mark && { lane, mark };
  };
  const point = (event: PointerEvent) => {
    const curve = curveAt(made, event.offsetY, scroller.current?.scrollTop ?? 0);
    if (curve) {
      const tiles = covering(curves, view.current, size.width, WHOLE);
      return setTip({ x: event.offsetX, y: event.offsetY, text: valueAt(tiles, curve, timeAt(event.offsetX)) });
    }
    const hit = under(event);
    if (!hit) return setTip(null);
    const { mark } = hit;
    const text = names[mark.name]?.text ?? "";
    const merged = mark.count > 1 ? `${format.count(mark.count)} spans merged, the longest: ` : "";
    setTip({ x: event.offsetX, y: event.offsetY, text: `${merged}${text}${mark.count > 1 ? "" : `, ${format.ns(mark.dur)}`}` });
  };

  const keys = keysOf({ detail, query, zoom, pan, choose, middle: () => (view.current.from + view.current.to) / 2 });
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  const labels = useMemo(() => <Labels made={made} drawn={drawn} query={query} />, [made, drawn, query]);
  const [mergedAll, looksAll] = [drawn?.merged, drawn?.looks].map((by) => [...(by?.values() ?? [])].reduce((sum, n) => sum + n, 0));
  return (
    <div class="tl">
      <p class="quiet tl-status" role="status">
        {drawn
          ? `${format.count(drawn.spans)} spans in the visible lanes, drawn as ${format.count(drawn.marks)} marks` +
            (mergedAll ? `; ${format.count(mergedAll)} of them are merged with neighbours (striped marks): zoom in to separate them` : "; none is merged") +
            (looksAll ? `; ${format.count(looksAll)} resource samples are merged; each column shows minimum and maximum` : "")
          : "Drawing"}
      </p>
      <div class="tl-top">
        <span class="tl-corner" />
        <canvas
          ref={ruler}
          class="tl-ruler"
          aria-hidden="true"
          style={{ height: `${RULER}px` }}
          onPointerDown={(event) => onDown(event, true)}
          onPointerMove={onMove}
          onPointerUp={(event) => onUp(event, false)}
        />
      </div>
      <div class="tl-scroll" ref={scroller} onScroll={redraw}>
        {labels}
        <div
          ref={stage}
          class="tl-stage"
          style={{ height: `min(${made.height}px, var(--tl-most))` }}
          role="application"
          aria-roledescription="timeline"
          aria-label={`Timeline, ${timeline.tracks.length} tracks`}
          aria-describedby="tl-keys"
          tabIndex={0}
          onKeyDown={onKey}
        >
          <canvas
            ref={canvas}
            class="tl-canvas"
            aria-hidden="true"
            onPointerDown={(event) => onDown(event, false)}
            onPointerMove={onMove}
            onPointerUp={(event) => onUp(event, true)}
            onPointerLeave={() => setTip(null)}
          />
          {tip && (
            <div class="tl-tip" style={{ left: `${Math.min(tip.x + 12, Math.max(0, size.width - 260))}px`, top: `${tip.y + 14}px` }}>
              {tip.text}
            </div>
          )}
        </div>
      </div>
      {drawn !== null && drawn.below > 0 && (
        <p class="tl-more">
          <button onClick={() => scroller.current?.scrollBy({ top: size.height * 0.8 })}>{format.plural(drawn.below, "more track")} below ▾</button>
        </p>
      )}
    </div>
  );
}

const placeOf = (span: Span) => ({ lane: span.lane, start: span.start_ns, dur: span.dur_ns });

function sought(names: SpanName[], words: string): Uint8Array | null {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return null;
  return Uint8Array.from(names, (name) => Number(parts.every((part) => name.text.toLowerCase().includes(part))));
}
