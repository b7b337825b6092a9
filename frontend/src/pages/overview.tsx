/** The overview: the report's sections, and in place of some what the page can do more with.
State: ?finding= the opened one, ?step= the step that is compared, ?from= and ?to= the part of the time that charts show. */
import type { JSX } from "preact";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Job, SectionList, Series, SessionBrief, SessionDetail } from "../generated/api";
import { Pairs, Section } from "../parts/blocks";
import { CaptureForm } from "../parts/capture_form";
import { Charts } from "../parts/charts";
import { Anatomy, Facts, Failed, Waiting } from "../parts/common";
import { HangDetails } from "../parts/hang";
import { SlowSteps } from "../parts/slow_steps";
import type { View } from "./view";

/** Sections that are pages. */
const PAGES = ["input", "memory", "ops", "tasks"];

export function Overview({ brief, job, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const detail = useLoaded<SessionDetail>(`${path}/summary`, { stamp });
  const sections = useLoaded<SectionList>(`${path}/sections`, { stamp });
  const series = useLoaded<Series>(`${path}/series`, { stamp });
  if (detail.problem) return <Failed problem={detail.problem} again={detail.again} />;
  if (!detail.value) return <Waiting what="Analysing the session" />;
  const status = job?.status;
  const charts = series.value && (
    <>
      <SlowSteps columns={series.value.columns} session={brief.key} query={query} stamp={stamp} />
      <Charts columns={series.value.columns} query={query} />
    </>
  );
  const instead: Record<string, JSX.Element | null> = { resources: charts, ...(status && { step: null }) };
  const shown = (sections.value?.items ?? []).filter(({ key, blocks }) => key in instead || (blocks.length && !PAGES.includes(key)));
  return (
    <>
      {brief.mode !== "import" && <Measured detail={detail.value} brief={brief} job={job} />}
      {sections.value && <Pairs rows={sections.value.lines.map(({ label, text }) => [label, text])} session={brief.key} />}
      {status && <HangDetails status={status} />}
      <CaptureForm job={job} session={brief.key} kind={null} />
      {status && (
        <section aria-labelledby="step-title">
          <h2 id="step-title">The step</h2>
          <Anatomy parts={status.anatomy.length ? status.anatomy : detail.value.anatomy} running />
        </section>
      )}
      {sections.problem && <Failed problem={sections.problem} again={sections.again} />}
      {series.problem && <Failed problem={series.problem} again={series.again} />}
      {shown.map((one) => (one.key in instead ? instead[one.key] : <Section key={one.key} section={one} session={brief.key} query={query} />))}
    </>
  );
}

/** How fast a measured job is. */
function Measured({ detail, brief, job }: { detail: SessionDetail; brief: SessionBrief; job: Job | null }) {
  const { summary, overhead } = detail;
  const times = summary.step_times;
  const status = job?.status;
  const rates = status ?? summary.throughput;
  const rate = rates.samples_per_s ? `${format.rate(rates.samples_per_s)} samples/s` : rates.steps_per_s !== null ? `${format.rate(rates.steps_per_s)} steps/s` : "";
  const facts: [string, string][] = [
    ["Throughput", rate],
    ["Steps", `${summary.steps_at_least ? "at least " : ""}${format.count(Math.max(summary.steps, status?.steps ?? 0))}`],
    ["Step (median)", times ? format.ns(times.p50_ns) : ""],
    ["p95", times ? format.ns(times.p95_ns) : ""],
    ["Wall time", format.lasting(Math.max(summary.wall_ns, brief.wall_ns, status ? 1e9 * (status.updated_unix_s - status.started_unix_s) : 0))],
    ["Profiling overhead", !summary.steps ? "" : `${format.percent(overhead.ratio ?? 0)} (${format.percent(overhead.low ?? 0)} to ${format.percent(overhead.high ?? 0)})`],
    ["Step defined by", times?.source ?? ""],
  ];
  return (
    <>
      <p class="command">
        <code>{summary.command.join(" ")}</code>
        <span class="quiet"> {summary.framework !== "none" && summary.framework}</span>
      </p>
      <Facts facts={facts.filter(([, value]) => value)} />
    </>
  );
}
