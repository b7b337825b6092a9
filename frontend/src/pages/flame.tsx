/** Flame graph: the stacks of one event. State: ?event=, ?window=, ?find=, ?invert=1, ?threads=0, ?at= the box that is zoomed to. */
import { useMemo } from "preact/hooks";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Flame, FlameList, StackTree } from "../generated/api";
import { useSlash } from "../hooks";
import { CaptureForm } from "../parts/capture_form";
import { Failed, Waiting } from "../parts/common";
import { Graph } from "../parts/graph";
import { functionRows, search, treeOf } from "../parts/tree";
import { change } from "../router";
import type { View } from "./view";

const WINDOWS: [string, string][] = [
  ["", "steady steps, if any"],
  ["all", "the whole run"],
];
const MOST_FUNCTIONS = 40;

export function FlamePage({ brief, job, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const events = useLoaded<FlameList>(`${path}/flames`, { stamp });
  const asked = new URLSearchParams({ event: query.get("event") ?? "", window: query.get("window") ?? "" });
  const merged = query.get("threads") === "0";
  const wanted = events.value?.items.length ? `${path}/stacks?${asked}${merged ? "" : "&by=thread"}` : null;
  const stacks = useLoaded<StackTree>(wanted, { stamp });
  if (events.problem) return <Failed problem={events.problem} again={events.again} />;
  if (!events.value) return <Waiting what="Reading stacks" />;
  const items = events.value.items;
  if (!items.length)
    return (
      <section aria-labelledby="flame-title">
        <h1 id="flame-title">Flame graph</h1>
        <p class="quiet">
          No stacks were sampled in this session: its job ran no Python for a second, or it was not recorded by stepscope. Of a
          running job: <code>stepscope trace JOB --kind native</code>.
        </p>
        <CaptureForm job={job} session={brief.key} kind="native" />
      </section>
    );
  return (
    <section aria-labelledby="flame-title">
      <h1 id="flame-title">Flame graph</h1>
      <CaptureForm job={job} session={brief.key} kind="native" />
      <Choices events={items} shown={stacks.value?.event ?? ""} query={query} api={`/api/v1${path}/flame?${asked}`} />
      {stacks.problem && <Failed problem={stacks.problem} again={stacks.again} />}
      {!stacks.value && !stacks.problem && <Waiting what="Merging stacks" />}
      {stacks.value && <Stacks data={stacks.value} query={query} session={brief.key} />}
    </section>
  );
}

function Choices({ events, shown, query, api }: { events: Flame[]; shown: string; query: URLSearchParams; api: string }) {
  return (
    <div class="controls">
      <label>
        Event
        <select value={shown} onChange={(event) => change({ event: event.currentTarget.value, at: null })}>
          {[...new Set(events.map((one) => one.event))].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Of
        <select
          value={query.get("window") ?? ""}
          onChange={(event) => change({ window: event.currentTarget.value, at: null })}
        >
          {WINDOWS.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <a href={api} target="_blank">
        Over time, and single threads (offline page)
      </a>
    </div>
  );
}

function Stacks({ data, query, session }: { data: StackTree; query: URLSearchParams; session: string }) {
  const inverted = query.get("invert") === "1";
  const words = query.get("find") ?? "";
  const field = useSlash();
  const tree = useMemo(() => treeOf(data, inverted), [data, inverted]);
  const found = useMemo(() => search(data, tree, words), [data, tree, words]);
  const at = Number.parseInt(query.get("at") ?? "", 10);
  const zoom = at > 0 && at < tree.parent.length ? at : 0;
  return (
    <>
      <p class={data.doubtful ? "health doubtful" : "health"}>
        {format.count(data.samples)} samples, {data.window}; {data.health.join("; ")}. {data.waits} {data.merged}
      </p>
      <ul class="legend">
        {data.kinds.map((kind) => (
          <li key={kind.kind}>
            <i class={`k-${kind.name}`} /> {kind.text} <b>{format.percent(kind.ratio)}</b>
          </li>
        ))}
      </ul>
      <div class="controls" role="search">
        <label>
          Search
          <input
            ref={field}
            type="search"
            value={words}
            placeholder="function or file ( / )"
            onInput={(event) => change({ find: event.currentTarget.value }, false)}
          />
        </label>
        <span role="status">
          {words && `${format.count(found.boxes.length)} ${found.boxes.length === 1 ? "match" : "matches"}, ${format.percent(found.ratio)} of the total`}
        </span>
        <button aria-pressed={inverted} onClick={() => change({ invert: inverted ? null : "1", at: null })}>
          Innermost first
        </button>
        {data.threads > 1 && (
          <button aria-pressed={query.get("threads") !== "0"} onClick={() => change({ threads: query.get("threads") === "0" ? null : "0", at: null })}>
            By thread
          </button>
        )}
        <button disabled={!zoom} onClick={() => change({ at: null })}>
          Show all
        </button>
      </div>
      <Graph
        data={data}
        tree={tree}
        inverted={inverted}
        words={words}
        zoom={zoom}
        onZoom={(box) => box !== zoom && change({ at: box ? String(box) : null })}
      />
      <Functions data={data} session={session} />
    </>
  );
}

function Functions({ data, session }: { data: StackTree; session: string }) {
  const rows = useMemo(() => functionRows(data, treeOf(data, false), MOST_FUNCTIONS), [data]);
  const whole = data.weight || 1;
  return (
    <>
      <h2>Functions by self weight</h2>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Function</th>
              <th class="number">Self</th>
              <th class="number">Total</th>
              <th class="wide">Where</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.frame} data={data} session={session} row={row} whole={whole} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const PYTHON = 1;

interface RowProps {
  data: StackTree;
  session: string;
  row: { frame: number; own: number; total: number };
  whole: number;
}

function Row({ data, session, row, whole }: RowProps) {
  const [name, file, line, module, kind] = data.frames[row.frame] ?? [0, 0, 0, 0, 0, 0];
  const where = data.strings[file] || data.strings[module] || "";
  const code = new URLSearchParams({ file: where, line: String(line) });
  return (
    <tr>
      <td class="named">
        <button class="plain" onClick={() => change({ find: data.strings[name] ?? "" })}>
          <code>{data.strings[name]}</code>
        </button>
      </td>
      <td class="number">
        {format.percent(row.own / whole)} <small>{format.measured(row.own, data.unit)}</small>
      </td>
      <td class="number">{format.percent(row.total / whole)}</td>
      <td class="wide">
        {kind === PYTHON && line > 0 ? (
          <a href={`/sessions/${session}/code?${code}`}>
            {where}:{line}
          </a>
        ) : (
          <span class="quiet">{where}</span>
        )}
      </td>
    </tr>
  );
}
