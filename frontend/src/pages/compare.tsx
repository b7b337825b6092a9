/** Compare: two sessions beside each other. State: ?before=, ?after= their keys, ?event= of their stacks. */
import type { ComponentChildren } from "preact";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Comparison, Finding, FindingList, SessionBrief, SessionDetail, SessionPage } from "../generated/api";
import { Anatomy, Failed, Frame, SeverityChip, Waiting } from "../parts/common";
import { change } from "../router";

interface Side {
  brief: SessionBrief;
  detail: SessionDetail | null;
  findings: Finding[] | null;
}

export function ComparePage({ query }: { query: URLSearchParams }) {
  const before = query.get("before") ?? "";
  const after = query.get("after") ?? "";
  const sessions = useLoaded<SessionPage>("/sessions?limit=1000");
  const both = before && after ? new URLSearchParams({ before, after, event: query.get("event") ?? "" }) : null;
  const compared = useLoaded<Comparison>(both ? `/compare?${both}` : null);
  return (
    <Frame title="Compare">
      <h1>Compare two sessions</h1>
      {sessions.problem && <Failed problem={sessions.problem} again={sessions.again} />}
      {!sessions.value && !sessions.problem && <Waiting what="Reading sessions" />}
      {sessions.value && (
        <div class="controls">
          <Choice label="Before" name="before" chosen={before} sessions={sessions.value.items} />
          <Choice label="After" name="after" chosen={after} sessions={sessions.value.items} />
          <button disabled={!both} onClick={() => change({ before: after, after: before })}>
            Swap
          </button>
        </div>
      )}
      {compared.problem && <Failed problem={compared.problem} again={compared.again} />}
      {both && !compared.value && !compared.problem && <Waiting what="Comparing" />}
      {both && compared.value && <Both found={compared.value} asked={both} />}
    </Frame>
  );
}

function Choice({ label, name, chosen, sessions }: { label: string; name: string; chosen: string; sessions: SessionBrief[] }) {
  return (
    <label>
      {label}
      <select value={chosen} onChange={(event) => change({ [name]: event.currentTarget.value, event: null })}>
        <option value="">choose a session</option>
        {sessions.map((brief) => (
          <option key={brief.key} value={brief.key}>
            {brief.name} ({format.when(brief.started_unix_s)})
          </option>
        ))}
      </select>
    </label>
  );
}

function useSide(brief: SessionBrief): Side {
  const detail = useLoaded<SessionDetail>(`/sessions/${brief.key}/summary`);
  const findings = useLoaded<FindingList>(`/sessions/${brief.key}/findings`);
  return { brief, detail: detail.value, findings: findings.value?.items ?? null };
}

function Both({ found, asked }: { found: Comparison; asked: URLSearchParams }) {
  const before = useSide(found.before);
  const after = useSide(found.after);
  return (
    <>
      {before.detail && after.detail ? <Numbers before={before.detail} after={after.detail} /> : <Waiting what="Reading" />}
      {before.findings && after.findings && <Findings before={before.findings} after={after.findings} found={found} />}
      <Stacks found={found} asked={asked} />
    </>
  );
}

function Head({ first, more }: { first: string; more?: string }) {
  return (
    <thead>
      <tr>
        <th>{first}</th>
        <th class="number">Before</th>
        <th class="number">After</th>
        <th class="number">{more ?? "Change"}</th>
      </tr>
    </thead>
  );
}

function growth(before: number | null | undefined, after: number | null | undefined): string {
  if (!before || after === null || after === undefined) return "";
  const ratio = after / before - 1;
  if (Math.abs(ratio) < 0.0005) return "same";
  return `${ratio >= 0 ? "+" : "\u2212"}${format.percent(Math.abs(ratio))}`;
}

type Row = [string, number | null | undefined, number | null | undefined, (value: number) => string];

function Numbers({ before, after }: { before: SessionDetail; after: SessionDetail }) {
  const [one, other] = [before.summary, after.summary];
  const rows: Row[] = [
    ["Steps", one.steps, other.steps, format.count],
    ["Samples/s", one.throughput.samples_per_s, other.throughput.samples_per_s, format.rate],
    ["Steps/s", one.throughput.steps_per_s, other.throughput.steps_per_s, format.rate],
    ["Step, mean", one.step_times?.mean_ns, other.step_times?.mean_ns, format.ns],
    ["Step, median", one.step_times?.p50_ns, other.step_times?.p50_ns, format.ns],
    ["Step, p95", one.step_times?.p95_ns, other.step_times?.p95_ns, format.ns],
    ["Wall time", one.wall_ns, other.wall_ns, format.ns],
  ];
  const names = [...new Set([...before.anatomy, ...after.anatomy].map((part) => part.component))];
  const spent = (detail: SessionDetail, name: string) => detail.anatomy.find((part) => part.component === name)?.ns_per_step ?? 0;
  const parts: Row[] = names.map((name) => [format.component(name), spent(before, name), spent(after, name), format.ns]);
  return (
    <section aria-labelledby="numbers-title">
      <h2 id="numbers-title">Steps</h2>
      <p class="quiet">Values as measured. Even two runs of one program differ; only the stacks below are tested against that noise.</p>
      <div class="two">
        <Named title={`Before: ${before.brief.name}`}>
          <Anatomy parts={before.anatomy} />
        </Named>
        <Named title={`After: ${after.brief.name}`}>
          <Anatomy parts={after.anatomy} />
        </Named>
      </div>
      <Table first="Measured" rows={rows.filter(([, b, a]) => b || a)} />
      <h3>A mean step</h3>
      <Table first="Part of the step" rows={parts} />
    </section>
  );
}

function Named({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

function Table({ first, rows }: { first: string; rows: Row[] }) {
  return (
    <div class="table">
      <table>
        <Head first={first} />
        <tbody>
          {rows.map(([name, before, after, text]) => (
            <tr key={name}>
              <td>{name}</td>
              <td class="number">{before || before === 0 ? text(before) : ""}</td>
              <td class="number">{after || after === 0 ? text(after) : ""}</td>
              <td class="number">{growth(before, after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Findings({ before, after, found }: { before: Finding[]; after: Finding[]; found: Comparison }) {
  const key = (finding: Finding) => `${finding.code} ${finding.where[0]?.function || finding.where[0]?.file || ""}`;
  const keys = [...new Set([...before, ...after].map(key))];
  const link = (brief: SessionBrief, list: Finding[], at: number) =>
    at >= 0 ? <a href={`/sessions/${brief.key}?finding=${at + 1}`}>{format.percent(list[at]?.cost.ratio ?? 0)}</a> : "not found";
  return (
    <section aria-labelledby="findings-title">
      <h2 id="findings-title">Findings</h2>
      {!keys.length && <p class="quiet">Neither session has any.</p>}
      {keys.length > 0 && (
        <div class="table">
          <table>
            <Head first="Finding" more="" />
            <tbody>
              {keys.map((name) => {
                const [one, other] = [before.findIndex((f) => key(f) === name), after.findIndex((f) => key(f) === name)];
                const finding = after[other] ?? before[one];
                return (
                  <tr key={name}>
                    <td>
                      {finding && <SeverityChip severity={finding.severity} />} <b>{finding?.code}</b> {finding?.title}
                    </td>
                    <td class="number">{link(found.before, before, one)}</td>
                    <td class="number">{link(found.after, after, other)}</td>
                    <td class="number">{one < 0 ? "new" : other < 0 ? "gone" : ""}</td>
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

function Stacks({ found, asked }: { found: Comparison; asked: URLSearchParams }) {
  const { stacks } = found;
  return (
    <section aria-labelledby="stacks-title">
      <h2 id="stacks-title">Stacks</h2>
      {!stacks && <p class="quiet">{found.problem || "The sessions have no stacks of a common event."}</p>}
      {stacks && (
        <>
          <div class="controls">
            <label>
              Event
              <select value={stacks.event} onChange={(event) => change({ event: event.currentTarget.value })}>
                {found.events.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            <a href={`/api/v1/compare/flame?${asked}`} target="_blank">
              Flame graph of the difference
            </a>
          </div>
          <p>
            <b>{stacks.verdict}.</b> {stacks.about.join(" ")}
          </p>
          {stacks.changes.length > 0 && <Changes stacks={stacks} />}
          {stacks.more > 0 && <p class="quiet">{format.count(stacks.more)} more functions changed beyond noise, each by less.</p>}
        </>
      )}
    </section>
  );
}

function Changes({ stacks }: { stacks: NonNullable<Comparison["stacks"]> }) {
  const amount = (value: number) => format.measured(value, stacks.unit);
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Function</th>
            <th class="number">Self, expected</th>
            <th class="number">Self, after</th>
            <th class="number">Change</th>
            <th class="number">Total, expected</th>
            <th class="number">Total, after</th>
            <th class="number">Change</th>
          </tr>
        </thead>
        <tbody>
          {stacks.changes.map((row, at) => (
            <tr key={at}>
              <td>
                <code>{row.function}</code>
                <small>{row.file || row.module}</small>
              </td>
              <td class="number">{amount(row.own_before)}</td>
              <td class="number">{amount(row.own_after)}</td>
              <td class="number">{row.own_text}</td>
              <td class="number">{amount(row.total_before)}</td>
              <td class="number">{amount(row.total_after)}</td>
              <td class="number">{row.total_text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
