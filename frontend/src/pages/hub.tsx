/** The hub: running jobs, and sessions. State: ?q= words, ?state=, ?offset=. */
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Job, JobPage, SessionPage } from "../generated/api";
import { useSlash } from "../hooks";
import { Anatomy, Failed, Frame, Phase, State, Top, Waiting } from "../parts/common";
import { change } from "../router";

const STATES = ["running", "finished", "recovered", "unfinished", "damaged"];
const PAGE = 50;
/** As often as sidecars publish. */
const FRESH_MS = 5_000;
/** While a job is young, its first figures are shown as soon as there are any. */
const SOON_MS = 1_000;
const YOUNG_S = 120;

export function Hub({ query }: { query: URLSearchParams }) {
  const [soon, setSoon] = useState(true);
  const jobs = useLoaded<JobPage>("/jobs?limit=1000", { every: soon ? SOON_MS : FRESH_MS });
  const young = jobs.value?.items.some((job) => !job.status.analysed_unix_s && Date.now() / 1000 - job.status.started_unix_s < YOUNG_S);
  useEffect(() => setSoon(young ?? true), [young]);
  return (
    <Frame>
      <section aria-labelledby="jobs-title">
        <h1 id="jobs-title">Running jobs</h1>
        {jobs.problem && <Failed problem={jobs.problem} again={jobs.again} />}
        {!jobs.value && !jobs.problem && <Waiting what="Looking for jobs" />}
        {jobs.value && <Jobs jobs={jobs.value.items} />}
      </section>
      <Sessions query={query} />
    </Frame>
  );
}

function Jobs({ jobs }: { jobs: Job[] }) {
  if (!jobs.length)
    return (
      <p class="quiet">
        No job is being measured. <code>stepscope run train.py</code> starts one; <code>stepscope enable</code> measures every
        TensorFlow job of an environment.
      </p>
    );
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Job</th>
            <th class="number">Pid</th>
            <th>User</th>
            <th>State</th>
            <th class="number">Steps</th>
            <th class="number">Steps/s</th>
            <th class="number">Samples/s</th>
            <th class="wide">The step</th>
            <th class="wide">Top finding</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.pid}>
              <td>
                {job.session ? <a href={`/sessions/${job.session}`}>{job.name}</a> : job.name}
                <Arguments job={job} />
              </td>
              <td class="number">{job.pid}</td>
              <td>{job.user}</td>
              <td>
                <State state={job.state} />
                <small>
                  <Phase status={job.status} />
                </small>
              </td>
              <td class="number">{format.count(job.status.steps)}</td>
              <td class="number">{format.rate(job.status.steps_per_s)}</td>
              <td class="number">{format.rate(job.status.samples_per_s)}</td>
              <td class="wide">
                {job.status.anatomy.length > 0 && (
                  <>
                    <Anatomy parts={job.status.anatomy} words={false} />
                    <small>{largest(job.status.anatomy)}</small>
                  </>
                )}
              </td>
              <td class="wide">
                <Top top={job.status.top} findings={job.status.analysed_unix_s ? job.status.findings : null} steps={job.status.steps} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What tells one script's processes apart. */
function Arguments({ job }: { job: Job }) {
  const { command } = job.status;
  const script = command.findIndex((word) => word.split("/").pop() === job.name);
  const words = script < 0 ? "" : command.slice(script + 1).join(" ");
  return words ? (
    <small class="one-line" title={words}>
      {words}
    </small>
  ) : null;
}

function largest(parts: { component: string; ratio: number }[]): string {
  return parts
    .slice(0, 2)
    .map((part) => `${format.component(part.component)} ${format.percent(part.ratio)}`)
    .join(" · ");
}

function Sessions({ query }: { query: URLSearchParams }) {
  const words = query.get("q") ?? "";
  const state = query.get("state") ?? "";
  const offset = Number(query.get("offset") ?? "0") || 0;
  const asked = new URLSearchParams({ q: words, state, offset: String(offset), limit: String(PAGE) });
  const found = useLoaded<SessionPage>(`/sessions?${asked}`, { every: 3 * FRESH_MS });
  const field = useSlash();
  return (
    <section aria-labelledby="sessions-title">
      <h1 id="sessions-title">Sessions</h1>
      <div class="controls" role="search">
        <label>
          Search
          <input
            ref={field}
            type="search"
            value={words}
            placeholder="name, command, finding ( / )"
            onInput={(event) => change({ q: event.currentTarget.value, offset: null }, false)}
          />
        </label>
        <label>
          State
          <select value={state} onChange={(event) => change({ state: event.currentTarget.value, offset: null })}>
            <option value="">any</option>
            {STATES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <a href="/compare">Compare two sessions</a>
      </div>
      {found.problem && <Failed problem={found.problem} again={found.again} />}
      {!found.value && !found.problem && <Waiting what="Reading sessions" />}
      {found.value && <List found={found.value} asked={words !== "" || state !== ""} />}
    </section>
  );
}

function List({ found, asked }: { found: SessionPage; asked: boolean }) {
  if (!found.items.length)
    return <p class="quiet">{asked ? "No session matches." : "The served folders contain no sessions."}</p>;
  return (
    <>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Session</th>
              <th>State</th>
              <th>Started</th>
              <th class="number">Took</th>
              <th class="number">Steps</th>
              <th class="number">Steps/s</th>
              <th class="number">Samples/s</th>
              <th class="wide">Top finding</th>
            </tr>
          </thead>
          <tbody>
            {found.items.map((brief) => (
              <tr key={brief.key}>
                <td>
                  <a href={`/sessions/${brief.key}`} title={brief.path}>
                    {brief.name}
                  </a>
                </td>
                <td>
                  <State state={brief.state} />
                </td>
                <td class="short">{format.when(brief.started_unix_s)}</td>
                <td class="number">{brief.wall_ns ? format.ns(brief.wall_ns) : ""}</td>
                <td class="number">{brief.steps ? format.count(brief.steps) : ""}</td>
                <td class="number">{format.rate(brief.steps_per_s)}</td>
                <td class="number">{format.rate(brief.samples_per_s)}</td>
                <td class="wide">{brief.problem ? brief.problem : <Top top={brief.top} findings={brief.findings} steps={brief.steps} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pager offset={found.offset} total={found.total} next={found.next_offset} />
    </>
  );
}

function Pager({ offset, total, next }: { offset: number; total: number; next: number | null }) {
  if (!offset && next === null) return null;
  const last = next === null ? total : next;
  return (
    <nav class="pager" aria-label="Pages of sessions">
      <button disabled={!offset} onClick={() => change({ offset: String(Math.max(0, offset - PAGE)) })}>
        Newer
      </button>
      <span>
        {offset + 1} to {last} of {total}
      </span>
      <button disabled={next === null} onClick={() => change({ offset: String(next) })}>
        Older
      </button>
    </nav>
  );
}
