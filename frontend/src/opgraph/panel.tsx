/** Beside the graph: the chosen op or group, with what it takes and gives. */
import * as format from "../format";
import type { GraphDetail, GraphEnd } from "../generated/api";
import { Excerpt } from "../parts/finding";
import { change } from "../router";
import { at } from "../timeline/panels";

interface Props {
  session: string;
  detail: GraphDetail;
  /** Whether it is an open group; null: an op. */
  open: boolean | null;
  toggle: () => void;
  go: (end: { id: string; inside: string[] }) => void;
}

export function ItemPanel({ session, detail, open, toggle, go }: Props) {
  const here = `/sessions/${session}`;
  const onTimeline = detail.track && `${here}/timeline?${new URLSearchParams({ show: `span:${detail.track}@${detail.start_ns}+${detail.dur_ns}` })}`;
  const facts: [string, string][] = [
    ["Takes", detail.calls ? `${format.ns(detail.own_ns)}, ${format.percent(detail.ratio)} of op time` : "not recorded in this step"],
    ["Critical path", detail.path_ns ? `${format.ns(detail.path_ns)}, ${format.percent(detail.path_ratio)} of the step` : "not on it: it ran at the same time as longer work"],
    ["What", detail.kind === "op" ? detail.about : [detail.about, detail.kind].filter(Boolean).join(", ")],
    ["Runs", detail.kind === "op" ? format.count(detail.calls) : `${format.count(detail.calls)} of ${format.plural(detail.ops, "op")}`],
    ...(detail.makes ? ([["Makes", detail.makes]] as [string, string][]) : []),
    ...(detail.layer && detail.kind === "op" ? ([["Layer", detail.layer]] as [string, string][]) : []),
    ...(detail.track ? ([["Begins", `${at(detail.start_ns)}, longest run ${format.ns(detail.dur_ns)}`]] as [string, string][]) : []),
    ...(detail.name && detail.name !== detail.title ? ([["Name", detail.name]] as [string, string][]) : []),
  ];
  return (
    <section aria-labelledby="item-title" class="tl-panel">
      <h2 id="item-title">{detail.title}</h2>
      <dl class="facts tl-facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div class="controls">
        {open !== null && <button onClick={toggle}>{open ? "Fold" : "Open"}</button>}
        {onTimeline && <a href={onTimeline}>On the timeline</a>}
        {(detail.kind === "op" || detail.layer) && (
          <a href={`${here}/ops?${new URLSearchParams(detail.kind === "op" ? { find: detail.name } : { by: "layer", find: detail.layer })}`}>In the table of ops</a>
        )}
        <button onClick={() => change({ at: null })}>Close</button>
      </div>
      <Ends words="Takes from" ends={detail.takes} total={detail.takes_total} go={go} />
      <Ends words="Gives to" ends={detail.gives} total={detail.gives_total} go={go} />
      <Ends words="Longest in it" ends={detail.longest} total={detail.longest.length} go={go} />
      {detail.file && (
        <>
          <p class="place">
            <a href={`${here}/code?${new URLSearchParams({ file: detail.file, line: String(detail.line) })}`}>
              <code>
                {detail.file}:{detail.line} {detail.function}
              </code>
            </a>
          </p>
          {detail.line > 0 && <Excerpt session={session} place={{ file: detail.file, line: detail.line, end_line: null }} />}
        </>
      )}
    </section>
  );
}

function Ends({ words, ends, total, go }: { words: string; ends: GraphEnd[]; total: number; go: Props["go"] }) {
  if (!ends.length) return null;
  return (
    <>
      <h3 class="tl-linked">
        {words} {total > ends.length && <span class="quiet">the largest {ends.length} of {format.count(total)}</span>}
      </h3>
      <ul class="tl-hits og-ends" tabIndex={0} aria-label={words}>
        {ends.map((end, i) => (
          <li key={`${end.id} ${i}`}>
            <button class="tl-link" onClick={() => go(end)}>
              {end.title}
            </button>{" "}
            <span class="quiet">
              {[end.about, format.ns(end.own_ns), end.text, end.bytes ? format.bytes(end.bytes) : ""].filter(Boolean).join(" · ")}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
