/** What each key does in the timeline, and the line that says so. */
import type { SpanDetail } from "../generated/api";
import { change } from "../router";
import { around, seconds, toggle } from "./state";

/** Choose a span: by its number in its lane, or by a time. */
export type Choose = (lane: number, which: { row?: number; ns?: number }, among: number) => void;

interface Moves {
  detail: SpanDetail | null;
  query: URLSearchParams;
  zoom: (factor: number) => void;
  pan: (share: number) => void;
  choose: Choose;
  /** The middle of the time that is shown, in nanoseconds. */
  middle: () => number;
}

/** What the keys do now, by their names as the browser gives them. */
export function keysOf({ detail, query, zoom, pan, choose, middle }: Moves): Record<string, () => void> {
  const span = detail?.span;
  const begin = () => choose(0, { ns: Math.max(0, Math.round(middle())) }, 1);
  const step = (lane: number, ns: number | null) => ns !== null && choose(lane, { ns }, 1);
  return {
    w: () => zoom(1 / 1.5),
    s: () => zoom(1.5),
    a: () => pan(-0.2),
    d: () => pan(0.2),
    "0": () => change({ from: null, to: null }),
    Home: () => change({ from: null, to: null }),
    f: () => span && change(around(span.start_ns, span.dur_ns)),
    m: () => span && change({ sel: `${seconds(span.start_ns)}~${seconds(span.start_ns + Math.max(1, span.dur_ns))}` }),
    l: () => {
      const link = detail?.links.find((one) => one.out) ?? detail?.links[0];
      if (link) choose(link.span.lane, { row: link.span.row }, 1);
    },
    p: () => detail && toggle(query, "pin", detail.track),
    Escape: () => change({ span: null, sel: null }),
    ArrowLeft: () => (detail && span ? step(span.lane, detail.previous_ns) : begin()),
    ArrowRight: () => (detail && span ? step(span.lane, detail.next_ns) : begin()),
    ArrowUp: () => (span ? span.lane > 0 && choose(span.lane - 1, { ns: detail?.parent_ns ?? span.start_ns }, 1) : begin()),
    ArrowDown: () => (span ? choose(span.lane + 1, { ns: detail?.child_ns ?? span.start_ns }, 1) : begin()),
  };
}

export function Keys() {
  return (
      <p id="tl-keys" class="quiet">
        Click a span; drag to select a time range. <kbd>Ctrl</kbd> wheel or <kbd>W</kbd> <kbd>S</kbd> zoom, <kbd>Shift</kbd> wheel, <kbd>Shift</kbd> drag, the ruler or{" "}
        <kbd>A</kbd> <kbd>D</kbd> move, arrow keys go from span to span, <kbd>F</kbd> zooms to it, <kbd>M</kbd> selects its time, <kbd>L</kbd>{" "}
        follows its link, <kbd>P</kbd> pins its track to the top, <kbd>0</kbd> shows the whole run,{" "}
        <kbd>Esc</kbd> clears the selection. In Find, <kbd>Enter</kbd> and <kbd>Shift</kbd> <kbd>Enter</kbd> walk through the hits.
      </p>
  );
}
