/** The graph of a traced step: its ops by layers and scopes, coloured by their time, with the critical path. State: opgraph/view.ts */
import "../opgraph/graph.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, type Problem } from "../api";
import { useLoaded } from "../data";
import * as format from "../format";
import type { GraphDetail, GraphHits, GraphItem, OpGraphView } from "../generated/api";
import { ItemPanel } from "../opgraph/panel";
import { BINS } from "../opgraph/paint";
import { Stage } from "../opgraph/stage";
import { NONE, seen } from "../opgraph/view";
import { CaptureForm } from "../parts/capture_form";
import { Failed, Waiting } from "../parts/common";
import { change } from "../router";
import { Find } from "../timeline/find";
import { useSettled } from "../timeline/panels";
import type { View } from "./view";

interface End {
  id: string;
  inside: string[];
}

export function GraphPage({ brief, job, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const which = { trace: query.get("trace") ?? "", step: query.get("step") ?? "" };
  const open = query.get("open") ?? "";
  const loaded = useLoaded<OpGraphView>(`${path}/graph?${new URLSearchParams({ ...which, open })}`, { stamp });
  if (loaded.problem?.status === 404)
    return (
      <section aria-labelledby="graph-title">
        <h1 id="graph-title">Graph of a step</h1>
        <p class="quiet">{loaded.problem.message}</p>
        <CaptureForm job={job} session={brief.key} kind="ops" />
      </section>
    );
  if (loaded.problem) return <Failed problem={loaded.problem} again={loaded.again} />;
  if (!loaded.value) return <Waiting what="Reading the op trace" />;
  return <Ready key={`${which.trace} ${which.step}`} session={brief.key} path={path} which={which} graph={loaded.value} query={query} />;
}

interface Shown {
  session: string;
  path: string;
  which: { trace: string; step: string };
  graph: OpGraphView;
  query: URLSearchParams;
}

function Ready({ session, path, which, graph, query }: Shown) {
  const chosen = query.get("at") ?? "";
  const words = query.get("find") ?? "";
  const [problem, setProblem] = useState<Problem | null>(null);
  const items = useMemo(() => new Map(graph.items.map((item) => [item.id, item])), [graph]);
  const detail = useLoaded<GraphDetail>(chosen ? `${path}/graphitem?${new URLSearchParams({ ...which, which: chosen })}` : null);
  const current = detail.value?.id === chosen ? detail.value : null;
  /** The chosen item, or the folded group that it is in. */
  const mark = items.get(chosen) ?? (current && seen(items, current));
  const settled = useSettled(words, 200);
  const found = useLoaded<GraphHits>(settled ? `${path}/graphsearch?${new URLSearchParams({ ...which, q: settled })}` : null);
  const hits = words && settled === words ? found.value : null;

  /** Choose an op or group, and open what is around it. */
  const go = (end: End, keep = true) => {
    const missing = end.inside.filter((id) => !graph.open.includes(id));
    change({ at: end.id, ...(missing.length ? { open: [...graph.open, ...missing].join(",") } : {}), show: null }, keep);
  };
  const toggle = (id: string) => {
    const left = graph.open.includes(id) ? graph.open.filter((one) => one !== id) : [...graph.open, id];
    change({ open: left.length ? left.join(",") : NONE });
  };
  const show = query.get("show");
  useEffect(() => {
    if (show) get<GraphDetail>(`${path}/graphitem?${new URLSearchParams({ ...which, which: show })}`).then((one) => go(one, false), (error: Problem) => (setProblem(error), change({ show: null }, false)));
  }, [show]);

  const at = hits?.items.findIndex((hit) => hit.id === chosen) ?? -1;
  const walk = {
    hit: at,
    total: hits?.total ?? null,
    go: (wanted: number) => {
      const all = hits?.items ?? [];
      const hit = all[((wanted % all.length) + all.length) % all.length];
      if (hit) go(hit);
    },
  };
  const marked = useMemo(() => new Set((hits?.items ?? []).flatMap((hit) => seen(items, hit)?.id ?? [])), [hits, items]);
  const step = graph.steps.find((one) => one.step === graph.step);
  return (
    <section aria-labelledby="graph-title">
      <h1 id="graph-title">Graph of a step</h1>
      {problem && <Failed problem={problem} again={() => setProblem(null)} />}
      <Summary graph={graph} number={step?.number ?? graph.step} />
      <div class="controls tl-controls" role="search">
        <Find words={words} walk={walk} what="an op, a type or a layer ( / )" />
        {graph.steps.length > 1 && (
          <label>
            Step
            <select value={String(graph.step)} onChange={(event) => change({ step: event.currentTarget.value, at: null })}>
              {graph.steps.map((one) => (
                <option key={one.step} value={String(one.step)}>
                  {one.number}, {format.ns(one.ns)}
                </option>
              ))}
            </select>
          </label>
        )}
        {graph.traces.length > 1 && (
          <label>
            Op trace
            <select value={graph.trace} onChange={(event) => change({ trace: event.currentTarget.value, step: null, at: null, open: null })}>
              {graph.traces.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        )}
        <span role="group" aria-label="Groups">
          <button aria-pressed={!query.get("open")} onClick={() => change({ open: null })}>
            Layers
          </button>
          <button aria-pressed={query.get("open") === NONE} onClick={() => change({ open: NONE })}>
            Fold all
          </button>
          <button aria-pressed={query.get("open") === "all"} onClick={() => change({ open: "all" })}>
            Open all
          </button>
        </span>
        <span class="quiet">
          {format.count(graph.items.filter((one) => !one.open).length)} boxes for {format.plural(graph.ops, "op")}, placed in {format.ns(graph.layout_ms * 1e6)}
          {graph.left_folded > 0 && `; ${format.plural(graph.left_folded, "group")} left folded: too much to draw`}
        </span>
      </div>
      <div class={current ? "tl-row tl-beside og-row" : "tl-row og-row"}>
        <Stage graph={graph} chosen={mark?.id ?? ""} detail={current} hits={marked} choose={(id) => change({ at: id })} toggle={toggle} />
        {current && <ItemPanel session={session} detail={current} open={current.kind === "op" ? null : (items.get(chosen)?.open ?? false)} toggle={() => toggle(current.id)} go={go} />}
      </div>
      <Keys />
      <Legend />
      <div class="tl-panels">
        <PathPanel graph={graph} chosen={chosen} items={items} choose={(id) => change({ at: id })} />
        <LongestPanel graph={graph} chosen={chosen} choose={(id) => change({ at: id })} />
      </div>
    </section>
  );
}

function Summary({ graph, number }: { graph: OpGraphView; number: number }) {
  const [ops, others] = [graph.path.find((part) => part.what === "ops"), graph.path.filter((part) => part.what !== "ops" && part.ratio >= 0.001)];
  return (
    <>
      <p class="quiet">
        Step {number} of {graph.trace}, {format.ns(graph.step_ns)}: {format.plural(graph.ops, "op")} took {format.ns(graph.own_ns)} {graph.device ? `on ${graph.device}` : "on all threads of the host"}.
        {!graph.linked && " What they hand over is not known: graphs are read of running TensorFlow jobs only, so there are no arrows."}
      </p>
      <p class="og-path">
        <i /> <b>Critical path</b> {format.ns(graph.step_ns)}, the whole step: {ops ? `${format.ns(ops.ns)} (${format.percent(ops.ratio)}) in ops` : "none of it in ops"}
        {others.length > 0 && `, ${others.map((part) => `${part.title} ${format.percent(part.ratio)}`).join(", ")}`}. All else ran at the same time as it.
      </p>
    </>
  );
}

function Keys() {
  return (
    <p id="og-keys" class="quiet">
      Click a box for its details, its triangle or twice to open or fold it; drag to move. <kbd>Ctrl</kbd> wheel or <kbd>W</kbd> <kbd>S</kbd> zoom, the wheel (after a click in the graph), <kbd>Shift</kbd> wheel,{" "}
      <kbd>A</kbd> <kbd>D</kbd> and <kbd>Page</kbd> keys move, arrow keys go along the arrows, <kbd>Enter</kbd> opens and folds, <kbd>F</kbd> zooms to the box, <kbd>L</kbd> follows the critical path, <kbd>0</kbd> shows all,{" "}
      <kbd>Esc</kbd> clears the choice. In Find, <kbd>Enter</kbd> and <kbd>Shift</kbd> <kbd>Enter</kbd> walk through the hits.
    </p>
  );
}

function Legend() {
  const words = BINS.map((from, at) => (at === 0 ? `below ${format.percent(BINS[1] ?? 0)}` : at === BINS.length - 1 ? `${format.percent(from)} and more` : `${format.percent(from)} to ${format.percent(BINS[at + 1] ?? 1)}`));
  return (
    <ul class="legend og-legend" aria-label="Colours and lines">
      <li>Share of op time:</li>
      {words.map((word, at) => (
        <li key={word}>
          <i class="og-bin" style={{ background: `var(--og-${at})` }} /> {word}
        </li>
      ))}
      <li>
        <i class="og-bin og-on" /> on the critical path
      </li>
      <li>
        <i class="og-arrow og-on" /> the path hands on by data
      </li>
      <li>
        <i class="og-arrow og-on og-dots" /> only in time
      </li>
      <li>
        <i class="og-arrow" /> data, wide by its bytes
      </li>
      <li>
        <i class="og-arrow og-dash" /> back: the next turn of a loop, or a group that also gives
      </li>
    </ul>
  );
}

function PathPanel({ graph, chosen, items, choose }: { graph: OpGraphView; chosen: string; items: Map<string, GraphItem>; choose: (id: string) => void }) {
  return (
    <section aria-labelledby="path-title" class="tl-panel">
      <h2 id="path-title">The critical path, from the step&apos;s begin to its end</h2>
      <ol class="tl-hits og-list" tabIndex={0} aria-label="Stretches of the critical path">
        {graph.stretches.map((one, i) => (
          <li key={i}>
            {items.has(one.id) ? (
              <button class="tl-link" {...(one.id === chosen ? { "aria-current": "true" } : {})} onClick={() => choose(one.id)}>
                {one.title}
              </button>
            ) : (
              one.title
            )}{" "}
            <span class="quiet">
              {format.ns(one.ns)}, {format.percent(one.ratio)} of the step
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

const LONGEST = 20;

function LongestPanel({ graph, chosen, choose }: { graph: OpGraphView; chosen: string; choose: (id: string) => void }) {
  const rows = graph.items.filter((item) => !item.open).sort((one, other) => other.own_ns - one.own_ns);
  return (
    <section aria-labelledby="longest-title" class="tl-panel">
      <h2 id="longest-title">The longest boxes</h2>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th class="number">Time</th>
              <th class="number">Share</th>
              <th class="number">On the path</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, LONGEST).map((row) => (
              <tr key={row.id}>
                <td class="tl-name">
                  <button class="tl-link" {...(row.id === chosen ? { "aria-current": "true" } : {})} onClick={() => choose(row.id)}>
                    {row.title}
                  </button>{" "}
                  <span class="quiet">{row.kind === "op" ? row.about : [row.about, format.plural(row.ops, "op")].filter(Boolean).join(", ")}</span>
                </td>
                <td class="number">{format.ns(row.own_ns)}</td>
                <td class="number">{format.percent(row.ratio)}</td>
                <td class="number">{row.path_ns ? format.ns(row.path_ns) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
