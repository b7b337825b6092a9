/** Compare: two sessions beside each other. State: ?before=, ?after= their keys, ?event= of their stacks, ?find= and ?changed= of the numbers. */
import type { ComponentChildren } from "preact";
import { useLoaded } from "../data";
import * as format from "../format";
import type { CompareReport, Comparison, Difference, Finding, FindingList, SessionBrief, SessionDetail, SessionPage } from "../generated/api";
import { Anatomy, Failed, Frame, SeverityChip, Waiting } from "../parts/common";
import { change } from "../router";
import "./input.css";
import "./hub.css";

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
          <Choice label="Before (A)" name="before" chosen={before} sessions={sessions.value.items} />
          <Choice label="After (B)" name="after" chosen={after} sessions={sessions.value.items} />
          <button disabled={!both} onClick={() => change({ before: after, after: before })}>
            Swap
          </button>
        </div>
      )}
      {compared.problem && <Failed problem={compared.problem} again={compared.again} />}
      {both && !compared.value && !compared.problem && <Waiting what="Comparing" />}
      {both && compared.value && <Both found={compared.value} asked={both} query={query} />}
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
            {brief.label.name || brief.name} ({format.when(brief.started_unix_s)})
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

function Both({ found, asked, query }: { found: Comparison; asked: URLSearchParams; query: URLSearchParams }) {
  const before = useSide(found.before);
  const after = useSide(found.after);
  return (
    <>
      {before.detail && after.detail ? <Numbers before={before.detail} after={after.detail} found={found} query={query} /> : <Waiting what="Reading" />}
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
        <th class="number">A</th>
        <th class="number">B</th>
        <th class="number">{more ?? "Change"}</th>
      </tr>
    </thead>
  );
}

/** What `stepscope compare` says: each number with its interval, tested against the noise between steps. */
function Numbers({ before, after, found, query }: { before: SessionDetail; after: SessionDetail; found: Comparison; query: URLSearchParams }) {
  return (
    <section aria-labelledby="numbers-title">
      <h2 id="numbers-title">Steps</h2>
      {found.verdict && <p class="answer">{sentence(found.verdict)}</p>}
      {found.no_numbers && <p class="quiet">{sentence(found.no_numbers)}</p>}
      {found.numbers?.notes.map((note) => (
        <p key={note} class="quiet">
          {sentence(note)}
        </p>
      ))}
      <div class="two">
        <Named title={`A: ${title(found.before)}`}>
          <Anatomy parts={before.anatomy} />
        </Named>
        <Named title={`B: ${title(found.after)}`}>
          <Anatomy parts={after.anatomy} />
        </Named>
      </div>
      {found.numbers && <Differences report={found.numbers} query={query} />}
    </section>
  );
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
const title = (brief: SessionBrief) => brief.label.name || brief.name;

const SECTIONS: Record<Difference["section"], string> = {
  throughput: "Throughput",
  steps: "The step",
  run: "The run",
  ledger: "Wall time by part",
  tasks: "Calls",
  anatomy: "Components of the step",
  ops: "Op time by line",
  "op-calls": "Ops, time of a call",
  python: "Python lines, share of the samples",
};
const BASES: Record<Difference["basis"], string> = {
  total: "same work",
  counted: "counted",
  timed: "timed",
  ops: "ops",
  samples: "samples",
  run: "whole run",
};
const NAMES: Record<string, string> = {
  samples_per_s: "samples/s",
  steps_per_s: "steps/s",
  wall: "wall time",
  memory_peak: "memory of all processes, peak",
  device_memory_peak: "device memory, peak",
  all: "all that both ran",
};
const VERDICTS: Partial<Record<Difference["verdict"], string>> = {
  same: "the same within noise",
  new: "only in B",
  gone: "only in A",
};

/** A change of more than this would have been seen: an undecided one is then the same. */
const CLOSE = 0.05;

function verdict(row: Difference): string {
  if (row.verdict !== "undecided") return VERDICTS[row.verdict] ?? row.verdict;
  if (row.low === null) return "one value a side";
  return row.smallest !== null && row.smallest <= CLOSE ? "the same within noise" : "undecided";
}

/** State: ?find= words, ?changed=1 leaves only what changed beyond noise. */
function Differences({ report, query }: { report: CompareReport; query: URLSearchParams }) {
  const words = query.get("find") ?? "";
  const changed = query.get("changed") === "1";
  const every = [report.main, report.typical, ...report.differences].filter((row): row is Difference => row !== null);
  const shown = every.filter(
    (row) => text(row).includes(words.toLowerCase()) && !(changed && (row.verdict === "same" || row.verdict === "undecided")),
  );
  return (
    <>
      <div class="controls">
        <label>
          Find
          <input type="search" value={words} onInput={(event) => change({ find: event.currentTarget.value }, false)} />
        </label>
        <label>
          <input type="checkbox" checked={changed} onChange={(event) => change({ changed: event.currentTarget.checked ? "1" : null })} />
          only what changed beyond noise
        </label>
        <span class="quiet" role="status">
          {shown.length} of {every.length}
        </span>
      </div>
      {shown.length > 0 && (
        <div class="table">
          <table>
            <thead>
              <tr>
                <th>Measured</th>
                <th class="number">A</th>
                <th class="number">B</th>
                <th class="number">Change</th>
                <th class="number">{format.percent(report.level)} interval</th>
                <th class="short">Verdict</th>
              </tr>
            </thead>
            <tbody>
              {(Object.keys(SECTIONS) as Difference["section"][]).map((section) => (
                <Section key={section} title={SECTIONS[section]} rows={shown.filter((row) => row.section === section)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Section({ title, rows }: { title: string; rows: Difference[] }) {
  if (!rows.length) return null;
  return (
    <>
      <tr>
        <th colSpan={6}>{title}</th>
      </tr>
      {rows.map((row, at) => (
        <tr key={at} class={`verdict-${row.verdict}`}>
          <td class="named">
            {row.section === "anatomy" ? format.component(row.name) : row.where ? <code>{row.name}</code> : (NAMES[row.name] ?? row.name)}
            {row.where && (
              <small>
                {row.where.file}:{row.where.line}
              </small>
            )}
            {row.basis !== "timed" && <small>{BASES[row.basis]}</small>}
          </td>
          <td class="number">{amount(row, row.before)}</td>
          <td class="number">{amount(row, row.after)}</td>
          <td class="number">{row.ratio === null ? "" : growth(row.ratio)}</td>
          <td class="number">{row.low === null || row.high === null ? "" : `${growth(row.low)} to ${growth(row.high)}`}</td>
          <td class="verdict">
            {verdict(row)}
            {row.verdict === "undecided" && row.smallest !== null && (
              <small>noise hides changes below {row.smallest < 10 ? format.percent(row.smallest) : "1000 %"}</small>
            )}
          </td>
        </tr>
      ))}
    </>
  );
}

function text(row: Difference): string {
  return `${SECTIONS[row.section]} ${row.name} ${NAMES[row.name] ?? format.component(row.name)} ${row.where?.file ?? ""}`.toLowerCase();
}

function amount(row: Difference, value: number | null): string {
  if (value === null) return "";
  return row.unit === "1/s" ? format.rate(value) : format.measured(value, row.unit);
}

/** As the terminal says it: +8.1 %; from three times on, 3.2 x. */
function growth(ratio: number): string {
  if (ratio >= 100) return "over 100 x";
  if (ratio >= 3) return `${format.short(Number(ratio.toPrecision(3)))} x`;
  const percent = 100 * (ratio - 1);
  return `${percent < 0 ? "\u2212" : "+"}${Math.abs(percent).toFixed(1)} %`;
}

function Named({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

function Findings({ before, after, found }: { before: Finding[]; after: Finding[]; found: Comparison }) {
  const key = (finding: Finding) => `${finding.code} ${finding.where[0]?.function || finding.where[0]?.file || ""}`;
  const keys = [...new Set([...before, ...after].map(key))];
  const link = (brief: SessionBrief, list: Finding[], at: number) =>
    at >= 0 ? <a href={`/sessions/${brief.key}?finding=${at + 1}`}>{price(list[at])}</a> : "not found";
  const price = (one?: Finding) => (one?.cost.ratio ? format.percent(one.cost.ratio) : "found");
  return (
    <section aria-labelledby="findings-title">
      <h2 id="findings-title">Findings</h2>
      {!keys.length && <p class="quiet">Neither session has any.</p>}
      {keys.length > 0 && (
        <div class="table">
          <table>
            <Head first="Finding" more="Change" />
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
