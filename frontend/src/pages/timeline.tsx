/** The timeline: what every thread, stream and step did when. State: timeline/state.ts; ?show= is a finding's evidence,
which is replaced by the range and the span that it is. */
import "../timeline/timeline.css";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { get, type Problem } from "../api";
import { useConnection } from "../connection";
import { useLoaded } from "../data";
import * as format from "../format";
import type { EvidencePlace, Span, SpanDetail, SpanName, Timeline } from "../generated/api";
import { Failed, Waiting } from "../parts/common";
import { change } from "../router";
import { Find, SearchPanel, useWalk } from "../timeline/find";
import { Keys } from "../timeline/keys";
import { Lanes } from "../timeline/lanes";
import { inkOf } from "../timeline/paint";
import { ResourcesPanel, SpanPanel, StatisticsPanel } from "../timeline/panels";
import { around, chosenOf, chosenWord, laneOf, seconds, selectionOf, viewOf, whole } from "../timeline/state";
import { loadNames } from "../timeline/tiles";
import type { View } from "./view";

const LOOK_MS = 250;
const LIVE_MS = 10_000;

/** Asks for the timeline beside the session's brief, which it does not need. */
export function TimelinePage({ session, job, stamp, query }: Omit<View, "brief"> & { session: string }) {
  const path = `/sessions/${session}`;
  // Asked again of finished sessions too: for a moment after the end the server still shows what it built of the running job.
  const loaded = useLoaded<Timeline>(`${path}/timeline`, { stamp, every: LIVE_MS });
  const timeline = loaded.value;
  const waits = timeline !== null && (timeline.state === "building" || timeline.renewing);
  useEffect(() => {
    if (!waits) return;
    const timer = setTimeout(loaded.again, LOOK_MS);
    return () => clearTimeout(timer);
  }, [timeline]);
  if (loaded.problem) return <Failed problem={loaded.problem} again={loaded.again} />;
  if (!timeline) return <Waiting what="Opening the timeline" />;
  if (timeline.state === "failed") return <Failed problem={{ message: `No timeline: ${timeline.doing}` } as Problem} again={loaded.again} />;
  if (timeline.state === "building") return <Progress timeline={timeline} />;
  if (!timeline.spans && !timeline.series.length) return <p class="quiet">No spans and no resource samples were recorded{job && " yet"}.</p>;
  return <Ready session={session} path={path} timeline={timeline} query={query} />;
}

function Progress({ timeline }: { timeline: Timeline }) {
  return (
    <div class="tl-progress" role="status">
      <p>
        Building the timeline (only once): {timeline.doing} <b>{format.percent(timeline.progress_ratio)}</b>
      </p>
      <progress max={1} value={timeline.progress_ratio} aria-label="Progress of building the timeline" />
    </div>
  );
}

function Ready({ session, path, timeline, query }: { session: string; path: string; timeline: Timeline; query: URLSearchParams }) {
  const [names, setNames] = useState<SpanName[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [among, setAmong] = useState(1);
  /** The picture first: numbers about it are asked for when it is drawn. */
  const [seen, setSeen] = useState(false);
  const { build } = timeline;
  useLayoutEffect(() => {
    const abort = new AbortController();
    loadNames(path, build, timeline.names, (loaded) => setNames([...loaded]), abort.signal).catch((error: Problem) => abort.signal.aborted || setProblem(error));
    return () => abort.abort();
  }, [path, build]);

  const chosen = chosenOf(query);
  const lane = chosen && laneOf(timeline.tracks, chosen);
  const detail = useLoaded<SpanDetail>(
    chosen && lane !== null ? `${path}/timeline/span?build=${build}&lane=${lane}&at_ns=${Math.max(0, chosen.start)}` : null,
  );
  const current = chosen && lane !== null ? detail.value : null;
  const track = timeline.tracks.find((one) => one.key === current?.track);

  const choose = (at: number, which: { row?: number; ns?: number }, merged: number) => {
    const place = which.row === undefined ? `at_ns=${Math.max(0, which.ns ?? 0)}` : `row=${which.row}`;
    get<SpanDetail>(`${path}/timeline/span?build=${build}&lane=${at}&${place}`).then(
      (found) => {
        setAmong(merged);
        show(found);
      },
      (error: Problem) => error.status === 404 || setProblem(error),
    );
  };
  /** Choose a span; what is shown moves only where the span is not in it, or too small to be seen. */
  const show = (found: SpanDetail, seen = false) => {
    const { start_ns, dur_ns } = found.span;
    const now = viewOf(new URLSearchParams(location.search)) ?? whole(timeline);
    const size = now.to - now.from;
    const outside = start_ns + dur_ns < now.from || start_ns > now.to;
    const moves: Record<string, string | null> = { span: chosenWord({ track: found.track, depth: found.depth, start: start_ns }) };
    if (seen && dur_ns < size / 200) Object.assign(moves, around(start_ns - dur_ns * 10, dur_ns * 21));
    else if (outside) Object.assign(moves, { from: seconds(start_ns + dur_ns / 2 - size / 2), to: seconds(start_ns + dur_ns / 2 + size / 2) });
    const open = (query.get("open") ?? "").split(",").filter(Boolean);
    if (found.depth >= 8 && !open.includes(found.track)) moves.open = [...open, found.track].join(",");
    change(moves);
  };
  const jump = (span: Span) => {
    setAmong(1);
    get<SpanDetail>(`${path}/timeline/span?build=${build}&lane=${span.lane}&row=${span.row}`).then((found) => show(found, true), setProblem);
  };

  const words = query.get("find") ?? "";
  const walk = useWalk(path, build, words, jump, setProblem);

  const evidence = query.get("show");
  const [missed, setMissed] = useState("");
  useEffect(() => {
    if (!evidence) return;
    setMissed("");
    get<EvidencePlace>(
      `${path}/timeline/evidence?${new URLSearchParams({ build, ref: evidence })}`,
    ).then((place) => {
      if (!place.found) {
        setMissed(evidence);
        return change({ show: null }, false);
      }
      const of = timeline.tracks.find((t) => place.lane !== null && place.lane >= t.first_lane && place.lane < t.first_lane + t.lanes);
      const span = of && place.lane !== null && place.start_ns !== null ? chosenWord({ track: of.key, depth: place.lane - of.first_lane, start: place.start_ns }) : null;
      const first = of?.trace || timeline.traces.find((one) => one.ref === evidence)?.trace || null;
      change({ show: null, from: seconds(place.from_ns), to: seconds(place.to_ns), span, sel: null, first }, false);
    }, setProblem);
  }, [evidence, build]);

  const { returned } = useConnection();
  useEffect(() => setProblem((now) => (now?.status === 0 ? null : now)), [returned]);

  const selection = selectionOf(query);
  const range = selection ?? viewOf(query) ?? whole(timeline);
  const categories = [...new Set(names.map((name) => name.category))];
  return (
    <>
      {problem && <Failed problem={problem} again={() => setProblem(null)} />}
      {missed && (
        <p class="failed" role="alert">
          The timeline holds nothing of {missed}.
        </p>
      )}
      <div class="controls tl-controls" role="search">
        <Find words={words} walk={walk} />
        <button disabled={!query.get("from")} onClick={() => change({ from: null, to: null, first: null })}>
          Whole run
        </button>
        {timeline.traces.map((trace) => (
          <button
            key={trace.trace}
            title={`Show the time of this op trace (${trace.trace}), and its lanes first`}
            aria-pressed={trace.trace === query.get("first")}
            onClick={() => change({ from: seconds(trace.begin_ns), to: seconds(trace.end_ns), first: trace.trace })}
          >
            Op trace at {format.lasting(trace.begin_ns)}
          </button>
        ))}
        <span class="quiet">
          {format.count(timeline.spans)} spans in {timeline.tracks.length} tracks{timeline.renewing && ", being renewed"}
        </span>
      </div>
      <div class={current && track ? "tl-row tl-beside" : "tl-row"}>
      <Lanes path={path} timeline={timeline} names={names} query={query} detail={current} choose={choose} failed={setProblem} seen={() => setSeen(true)} />
        {current && track && (
          <SpanPanel
            session={session}
            detail={current}
            title={`${track.group}, ${track.title}`}
            among={among}
            trace={track.trace}
            go={(at, ns) => choose(at, { ns }, 1)}
            zoom={() => change(around(current.span.start_ns, current.span.dur_ns))}
            none={() => change({ span: null })}
          />
        )}
      </div>
      <Keys />
      <ul class="legend" aria-label="Colours">
        {categories.map((category) => (
          <li key={category}>
            <i style={{ background: inkOf(category) }} /> {category}
          </li>
        ))}
      </ul>
      {timeline.left_out.length > 0 && (
        <p class="quiet">
          Not drawn: {timeline.left_out.map((left) => `${format.count(left.count)} ${left.what}`).join("; ")}.
        </p>
      )}
      <div class="tl-panels">
        <SearchPanel path={path} build={build} words={words} walk={walk} />
        <StatisticsPanel path={path} build={build} range={range} chosen={selection !== null} asks={seen} />
        {timeline.series.length > 0 && <ResourcesPanel path={path} timeline={timeline} range={range} chosen={selection !== null} asks={seen} />}
      </div>
    </>
  );
}
