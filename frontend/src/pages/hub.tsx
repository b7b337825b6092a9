/** The hub: running jobs, and sessions. State: ?q= words for both, ?jobs= what the jobs are sorted by; see sessions.tsx. */
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Job, JobPage, SessionPage } from "../generated/api";
import { useSlash } from "../hooks";
import { Anatomy, Failed, Frame, Phase, State, Top, Waiting } from "../parts/common";
import { QuickCapture } from "../parts/capture_form";
import { Hang } from "../parts/hang";
import { change } from "../router";
import { Sessions } from "./sessions";
import "./hub.css";

/** As often as sidecars publish. */
const FRESH_MS = 5_000;
/** While a job is young, its first figures are shown as soon as there are any. */
const SOON_MS = 1_000;
const SLOW_MS = 15_000;
const YOUNG_S = 120;

type Key = "name" | "pid" | "user" | "state" | "steps" | "steps_per_s" | "samples_per_s" | "step" | "cost";

const COLUMNS: [Key, string, string][] = [
  ["name", "Job", ""],
  ["pid", "Pid", "number less"],
  ["user", "User", "less"],
  ["state", "State", ""],
  ["steps", "Steps", "number less"],
  ["steps_per_s", "Steps/s", "number"],
  ["samples_per_s", "Samples/s", "number less"],
  ["step", "The step", "wide"],
  ["cost", "Top finding", "wide"],
];

export function Hub({ query }: { query: URLSearchParams }) {
  const [soon, setSoon] = useState(true);
  const jobs = useLoaded<JobPage>("/jobs?limit=1000", { every: soon ? SOON_MS : FRESH_MS });
  const young = jobs.value?.items.some((job) => !job.status.analysed_unix_s && Date.now() / 1000 - job.status.started_unix_s < YOUNG_S);
  useEffect(() => setSoon(young ?? true), [young]);
  const words = query.get("q") ?? "";
  const counted = useLoaded<SessionPage>(`/sessions?${new URLSearchParams({ q: words, limit: "1" })}`, { every: SLOW_MS });
  const field = useSlash();
  return (
    <Frame>
      <div class="controls" role="search">
        <label>
          Search
          <input
            ref={field}
            type="search"
            value={words}
            placeholder="name, argument, tag, finding ( / )"
            onInput={(event) => change({ q: event.currentTarget.value, offset: null }, false)}
          />
        </label>
        <a href="#jobs-title">{jobs.value ? format.plural(matching(jobs.value.items, words).length, "running job") : "Running jobs"}</a>
        <a href="#sessions-title">{counted.value ? format.plural(counted.value.total, "session") : "Sessions"}</a>
      </div>
      <section aria-labelledby="jobs-title">
        <h1 id="jobs-title">Running jobs</h1>
        {jobs.problem && <Failed problem={jobs.problem} again={jobs.again} />}
        {!jobs.value && !jobs.problem && <Waiting what="Looking for jobs" />}
        {jobs.value && <Jobs jobs={jobs.value.items} words={words} sort={(query.get("jobs") ?? "") as Key | ""} />}
      </section>
      <Sessions query={query} />
    </Frame>
  );
}

function Jobs({ jobs, words, sort }: { jobs: Job[]; words: string; sort: Key | "" }) {
  if (!jobs.length)
    return (
      <p class="quiet">
        No job is being measured. <code>stepscope run train.py</code> starts one; <code>stepscope enable</code> measures every
        TensorFlow job of an environment.
      </p>
    );
  const shown = matching(jobs, words);
  if (sort) shown.sort((one, other) => compare(value(one, sort), value(other, sort)));
  const groups = sort ? shown.map((job) => [job]) : together(shown);
  if (!shown.length) return <p class="quiet">None of {format.plural(jobs.length, "running job")} matches.</p>;
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            {COLUMNS.map(([key, title, kind]) => (
              <th key={key} class={kind} aria-sort={sort === key ? (isText(key) ? "ascending" : "descending") : "none"}>
                <button class="sort" onClick={() => change({ jobs: sort === key ? null : key })}>
                  {title}
                </button>
              </th>
            ))}
            <th>
              <span class="spoken">Capture</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {groups.flatMap((group) => [
            group.length > 1 && (
              <tr key={`of-${group[0]!.pid}`} class="group">
                <th colSpan={COLUMNS.length + 1} scope="rowgroup">
                  {ofCluster(group)}
                </th>
              </tr>
            ),
            ...group.map((job) => (
              <tr key={job.pid}>
                <td class="named">
                  {job.session ? <a href={`/sessions/${job.session}`}>{job.name}</a> : job.name}
                  {job.arguments && (
                    <small class="one-line" title={job.arguments}>
                      {job.arguments}
                    </small>
                  )}
                  {job.status.member && <small>{job.status.member}</small>}
                  <OfSession job={job} />
                </td>
                <td class="number less">{job.pid}</td>
                <td class="less">{job.user}</td>
                <td>
                  <State state={job.state} />
                  <small>
                    {job.status.hang ? <Hang status={job.status} /> : <Phase status={job.status} />}
                  </small>
                </td>
                <td class="number less">{format.count(job.status.steps)}</td>
                <td class="number">{format.rate(job.status.steps_per_s)}</td>
                <td class="number less">{format.rate(job.status.samples_per_s)}</td>
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
                <td>
                  <QuickCapture job={job} />
                </td>
              </tr>
            )),
          ])}
        </tbody>
      </table>
    </div>
  );
}

function matching(jobs: Job[], words: string): Job[] {
  const asked = words.toLowerCase().split(/\s+/).filter(Boolean);
  return jobs.filter((job) => asked.every((word) => text(job).includes(word)));
}

const RANKS = ["", "info", "low", "ask", "medium", "high"];

/** How bad it is, in few classes, so that rows keep their places while costs change. */
function badness(job: Job): number {
  return job.status.hang ? RANKS.length : RANKS.indexOf(job.status.top?.severity ?? "");
}

/** The worst first, else in their order; those of one cluster together. */
function together(jobs: Job[]): Job[][] {
  const groups = new Map<string, Job[]>();
  for (const job of jobs) {
    const key = job.status.cluster ? `${job.user} ${job.status.cluster}` : String(job.pid);
    groups.set(key, [...(groups.get(key) ?? []), job]);
  }
  const worst = (group: Job[]) => Math.max(...group.map(badness));
  return [...groups.values()]
    .map((group) => group.sort((one, other) => one.status.member.localeCompare(other.status.member)))
    .sort((one, other) => worst(other) - worst(one));
}

/** The session of a job under its own name, or why there is none to open. */
function OfSession({ job }: { job: Job }) {
  const path = job.status.session;
  if (!job.session) return <small class="quiet">{path ? "its session cannot be read here" : "no session yet"}</small>;
  const name = path.split("/").pop()?.replace(/\.stepscope$/, "");
  return (
    <small class="one-line" title={path}>
      session <a href={`/sessions/${job.session}`}>{name}</a>
    </small>
  );
}

function ofCluster(group: Job[]): string {
  const names = new Set(group.flatMap((job) => job.status.member.split(", ")));
  return `One job: ${names.size} of ${format.plural(Math.max(...group.map((job) => job.status.cluster_tasks)), "task")}`;
}

const isText = (key: Key) => key === "name" || key === "user" || key === "state";

/** What a column is sorted by; the step by the share in which it waits for its input. */
function value(job: Job, key: Key): string | number {
  const { status } = job;
  if (key === "name") return `${job.name} ${job.arguments}`;
  if (key === "user") return job.user;
  if (key === "state") return `${job.state} ${status.phase}`;
  if (key === "step") return status.anatomy.find((part) => part.component === "input-wait")?.ratio ?? 0;
  if (key === "cost") return status.top?.cost_ratio ?? -1;
  return key === "pid" ? job.pid : (status[key] ?? -1);
}

function compare(one: string | number, other: string | number): number {
  return typeof one === "string" ? one.localeCompare(String(other)) : Number(other) - one;
}

function text(job: Job): string {
  const { status } = job;
  const top = status.top ? `${status.top.code} ${status.top.title} ${status.top.place}` : "";
  return [job.name, job.arguments, job.role, job.status.member, job.user, job.state, status.phase, top, largest(status.anatomy), String(job.pid)]
    .join(" ")
    .toLowerCase();
}

function largest(parts: { component: string; ratio: number }[]): string {
  return parts
    .slice(0, 2)
    .map((part) => `${format.component(part.component)} ${format.percent(part.ratio)}`)
    .join(" · ");
}
