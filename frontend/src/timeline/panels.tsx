/** Beside the lanes: the chosen span, what happened in a range, and what a search finds. */
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../data";
import * as format from "../format";
import type { SeriesRanges, SpanDetail, SpanStatistics, Timeline } from "../generated/api";
import { Failed } from "../parts/common";
import { Excerpt } from "../parts/finding";
import { change } from "../router";
import { inkOf } from "./paint";
import type { View } from "./view";

export function at(ns: number): string {
  return `${(ns / 1e9).toFixed(6)} s`;
}

interface Chosen {
  session: string;
  detail: SpanDetail;
  title: string;
  /** Spans that the mark stood for when it was clicked on. */
  among: number;
  /** Its op trace; empty: it comes from records. */
  trace: string;
  go: (lane: number, ns: number) => void;
  zoom: () => void;
  none: () => void;
}

export function SpanPanel({ session, detail, title, among, trace, go, zoom, none }: Chosen) {
  const { span, name } = detail;
  const to = (words: string, lane: number, ns: number | null) => (
    <button disabled={ns === null} onClick={() => ns !== null && go(lane, ns)}>
      {words}
    </button>
  );
  return (
    <section aria-labelledby="span-title" class="tl-panel">
      <h2 id="span-title">
        <i class="tl-chip" style={{ background: inkOf(name.category) }} /> {name.text}
      </h2>
      {among > 1 && <p class="quiet">The longest of {format.count(among)} spans merged at this zoom.</p>}
      <dl class="facts tl-facts">
        {[
          ["Takes", format.ns(span.dur_ns)],
          ["Begins", at(span.start_ns)],
          ["What", name.category],
          ...(name.makes ? [["Makes", name.makes]] : []),
          ["Step", detail.step === null ? "outside the steps" : `${detail.step}`],
          ["Track", title],
          ["Span", `${format.count(span.row + 1)} of ${format.count(detail.spans)} at depth ${detail.depth}`],
        ].map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {detail.step_parts.length > 0 && <StepParts parts={detail.step_parts} />}
      <div class="controls">
        {to("Previous", span.lane, detail.previous_ns)}
        {to("Next", span.lane, detail.next_ns)}
        {to("Enclosing span", span.lane - 1, detail.parent_ns)}
        {to("First inside", span.lane + 1, detail.child_ns)}
        <button onClick={zoom}>Zoom to it</button>
        <button onClick={() => change({ find: name.text })}>Find all</button>
        {trace && IN_GRAPH.has(name.category) && <a href={`/sessions/${session}/graph?${new URLSearchParams({ trace, show: name.text })}`}>In the graph</a>}
        <button onClick={none}>Close</button>
      </div>
      {detail.links_total > 0 && <Linked detail={detail} go={go} />}
      {name.file && (
        <>
          <p class="place">
            <code>
              {name.file}:{name.line} {name.function}
            </code>
          </p>
          {name.line > 0 && <Excerpt session={session} place={{ file: name.file, line: name.line, end_line: null }} />}
        </>
      )}
    </section>
  );
}

/** What is an op of a graph, or the work of one. */
const IN_GRAPH = new Set(["op", "python", "copy"]);

/** How the step of the span divides. */
function StepParts({ parts }: { parts: SpanDetail["step_parts"] }) {
  const whole = parts.reduce((sum, part) => sum + part.ns, 0);
  return (
    <>
      <h3 class="tl-linked">Its step of {format.ns(whole)}</h3>
      <ul class="tl-parts">
        {parts.map((part) => (
          <li key={part.text}>
            <i class="tl-chip" style={{ background: inkOf(part.category) }} /> {part.text} <b>{format.ns(part.ns)}</b>{" "}
            <span class="quiet">{format.percent(part.ns / (whole || 1))}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const LINK_WORDS: Record<string, [string, string]> = { launch: ["launched by", "launches"], flow: ["comes from", "leads to"], transfer: ["comes from", "goes to"], data: ["takes from", "gives to"] };

/** Where the arrows of the chosen span begin and end. */
function Linked({ detail, go }: { detail: SpanDetail; go: (lane: number, ns: number) => void }) {
  const { links, links_total, span } = detail;
  return (
    <>
      <h3 class="tl-linked">Arrows</h3>
      {links_total > links.length && (
        <p class="quiet">
          {links.length} of {format.count(links_total)} are drawn: those that are nearest in time.
        </p>
      )}
      <ul class="tl-hits">
        {links.map((link) => {
          const later = link.span.start_ns - span.start_ns;
          return (
            <li key={`${link.out} ${link.span.lane} ${link.span.row}`}>
              {LINK_WORDS[link.kind]?.[Number(link.out)]}{" "}
              <button class="tl-link" onClick={() => go(link.span.lane, link.span.start_ns)}>
                {link.text || "(no name)"}
              </button>{" "}
              <span class="quiet">
                {format.ns(Math.abs(later))} {later < 0 ? "earlier" : "later"}, {format.ns(link.span.dur_ns)}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

const FEW = 12;

interface Ranged {
  path: string;
  range: View;
  /** The range is a selection. */
  chosen: boolean;
  /** Whether it may ask yet. */
  asks: boolean;
}

export function StatisticsPanel({ path, build, range, chosen, asks }: Ranged & { build: string }) {
  const asked = useSettled(`${Math.max(0, Math.floor(range.from))} ${Math.max(1, Math.ceil(range.to))}`, 250).split(" ");
  const [limit, setLimit] = useState(FEW);
  const found = useLoaded<SpanStatistics>(
    asks ? `${path}/timeline/statistics?build=${build}&from_ns=${asked[0]}&to_ns=${asked[1]}&limit=${limit}` : null,
  );
  const length = Number(asked[1]) - Number(asked[0]);
  return (
    <section aria-labelledby="statistics-title" class="tl-panel">
      <h2 id="statistics-title">{chosen ? "In the selection" : "In view"}</h2>
      {found.problem && <Failed problem={found.problem} again={found.again} />}
      <p class="quiet" role="status">
        {format.ns(length)} from {at(Number(asked[0]))}
        {found.value && ` · ${format.count(found.value.spans)} spans of ${format.count(found.value.total)} names`}. Spans nest, so totals include each other.
        {chosen && (
          <>
            {" "}
            <button onClick={() => change({ from: String(range.from / 1e9), to: String(range.to / 1e9), sel: null })}>Zoom to it</button>{" "}
            <button onClick={() => change({ sel: null })}>Unselect</button>
          </>
        )}
      </p>
      {found.value && found.value.items.length > 0 && (
        <div class="table">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th class="number">Total</th>
                <th class="number">Count</th>
                <th class="number">Mean</th>
                <th class="number">Longest</th>
              </tr>
            </thead>
            <tbody>
              {found.value.items.map((row) => (
                <tr key={row.name}>
                  <td class="tl-name">
                    <i class="tl-chip" style={{ background: inkOf(row.category) }} />
                    <button class="tl-link" onClick={() => change({ find: row.text })}>
                      {row.text || "(no name)"}
                    </button>
                  </td>
                  <td class="number">{format.ns(row.total_ns)}</td>
                  <td class="number">{format.count(row.count)}</td>
                  <td class="number">{format.ns(row.mean_ns)}</td>
                  <td class="number">{format.ns(row.max_ns)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.value && found.value.total > limit && (
        <p>
          <button onClick={() => setLimit(Math.min(1000, limit * 4))}>Show more of {format.count(found.value.total)}</button>
        </p>
      )}
    </section>
  );
}

/** What the lanes of resources show, as numbers. */
export function ResourcesPanel({ path, timeline, range, chosen, asks }: Ranged & { timeline: Timeline }) {
  const asked = useSettled(`from_ns=${Math.max(0, Math.floor(range.from))}&to_ns=${Math.max(1, Math.ceil(range.to))}`, 250);
  const found = useLoaded<SeriesRanges>(asks ? `${path}/timeline/resources?build=${timeline.build}&${asked}` : null);
  return (
    <section aria-labelledby="resources-title" class="tl-panel">
      <h2 id="resources-title">{chosen ? "Resources in the selection" : "Resources in view"}</h2>
      {found.problem && <Failed problem={found.problem} again={found.again} />}
      {found.value?.items.length === 0 && <p class="quiet">No samples in this time range.</p>}
      {found.value && found.value.items.length > 0 && (
        <div class="table">
          <table>
            <thead>
              <tr>
                <th>Resource</th>
                <th class="number">Lowest</th>
                <th class="number">Mean</th>
                <th class="number">Highest</th>
                <th class="number">Samples</th>
              </tr>
            </thead>
            <tbody>
              {found.value.items.map((row) => {
                const series = timeline.series.find((one) => one.key === row.key);
                return (
                  <tr key={row.key}>
                    <td title={series?.about}>{series?.title}</td>
                    {[row.low, row.mean, row.high].map((value, at) => (
                      <td key={at} class="number">
                        {format.measured(value, series?.unit ?? "")}
                      </td>
                    ))}
                    <td class="number">{format.count(row.samples)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** A value once it has stood still for so long. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
