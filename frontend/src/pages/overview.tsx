/** The overview: what costs time, how fast it is, what the step consists of, and what the machine did meanwhile.
State: ?finding= the opened one, ?step= the step that is compared, ?from= and ?to= the part of the time that charts show. */
import { useLoaded } from "../data";
import * as format from "../format";
import type { FindingList, Imported as ImportedSession, Job, Series, SessionBrief, SessionDetail } from "../generated/api";
import { Charts } from "../parts/charts";
import { Detectors, Stages, useAccount, WholeJob } from "../parts/account";
import { CaptureForm } from "../parts/capture_form";
import { Anatomy, Facts, Failed, Waiting } from "../parts/common";
import { FindingCard } from "../parts/finding";
import { HangDetails } from "../parts/hang";
import { SlowSteps } from "../parts/slow_steps";
import type { View } from "./view";

export function Overview({ brief, job, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const detail = useLoaded<SessionDetail>(`${path}/summary`, { stamp });
  const findings = useLoaded<FindingList>(`${path}/findings`, { stamp });
  const series = useLoaded<Series>(`${path}/series`, { stamp });
  const account = useAccount(brief.key, stamp);
  if (detail.problem) return <Failed problem={detail.problem} again={detail.again} />;
  if (!detail.value) return <Waiting what="Analysing the session" />;
  const { anatomy, checked_said, nothing_said, imported, diagnostics } = detail.value;
  const status = job?.status;
  const found = findings.value?.items;
  return (
    <>
      {imported ? <Imported imported={imported} /> : <Measured detail={detail.value} brief={brief} job={job} />}
      {status && <HangDetails status={status} />}
      <CaptureForm job={job} session={brief.key} kind={null} />
      <section aria-labelledby="anatomy-title">
        <h2 id="anatomy-title">The step</h2>
        {imported ? (
          <>
            {imported.steps && <p class="quiet">{imported.steps}</p>}
            {imported.parts.length > 0 && <Anatomy parts={imported.parts.map((p) => ({ component: p.part, word: p.word, ratio: p.ratio }))} />}
          </>
        ) : (
          <Anatomy parts={status?.anatomy.length ? status.anatomy : anatomy} running={job !== null} />
        )}
        {account && <Stages stages={account.stages} />}
      </section>
      <section aria-labelledby="findings-title">
        <h2 id="findings-title">Findings</h2>
        {findings.problem && <Failed problem={findings.problem} again={findings.again} />}
        {found?.every((finding) => finding.severity === "info") && <p class="quiet">{sentence(nothing_said)}</p>}
        {found?.map((finding, index) => (
          <FindingCard key={`${finding.code} ${index}`} finding={finding} index={index} session={brief.key} query={query} />
        ))}
        <Detectors said={checked_said} detectors={account?.detectors ?? []} />
      </section>
      {account && <WholeJob account={account} session={brief.key} running={job !== null} />}
      {series.problem && <Failed problem={series.problem} again={series.again} />}
      {series.value && <SlowSteps columns={series.value.columns} session={brief.key} query={query} stamp={stamp} />}
      {series.value && <Charts columns={series.value.columns} query={query} />}
      {diagnostics.length > 0 && (
        <section aria-labelledby="diagnostics-title">
          <h2 id="diagnostics-title">Problems of stepscope</h2>
          <ul>
            {diagnostics.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
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

/** What other tools' files hold: nothing was measured, so there is no throughput and no cost. */
function Imported({ imported }: { imported: ImportedSession }) {
  return (
    <dl class="recorded">
      {imported.lines.map(({ label, text }, at) => (
        <div key={at}>
          <dt>{label}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
