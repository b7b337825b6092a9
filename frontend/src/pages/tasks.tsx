/** Tasks: what the job does again and again; while it runs, each can be traced. State: ?sort=, ?find=. */
import { useState } from "preact/hooks";
import { post, type Problem } from "../api";
import { useLoaded } from "../data";
import * as format from "../format";
import type { Asked, CaptureList, Task, TaskPage } from "../generated/api";
import { CaptureForm } from "../parts/capture_form";
import { CapturePanel } from "../parts/captures";
import { Failed, Waiting } from "../parts/common";
import { change } from "../router";
import type { View } from "./view";

type Column = "name" | "count" | "rate_per_s" | "total_ns" | "mean_ns" | "p50_ns" | "p95_ns" | "p99_ns" | "max_ns" | "outliers" | "trend_ratio";

const COLUMNS: [Column, string][] = [
  ["count", "Count"],
  ["rate_per_s", "Per s"],
  ["total_ns", "Total"],
  ["mean_ns", "Mean"],
  ["p50_ns", "p50"],
  ["p95_ns", "p95"],
  ["p99_ns", "p99"],
  ["max_ns", "Max"],
  ["outliers", "Outliers"],
  ["trend_ratio", "Trend"],
];

export function Tasks({ brief, job, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const tasks = useLoaded<TaskPage>(`${path}/tasks?limit=1000`, { stamp });
  const captures = useLoaded<CaptureList>(`${path}/captures`, { stamp });
  const [problem, setProblem] = useState<Problem | null>(null);
  const [asked, setAsked] = useState<string[]>([]);
  const sort = (query.get("sort") ?? "total_ns") as Column;
  const words = query.get("find") ?? "";

  const trace = (task: Task) => {
    if (!job) return;
    setProblem(null);
    post<Asked>(`/jobs/${job.pid}/captures`, { kind: "ops", task: task.name }).then(
      ({ request }) => setAsked((earlier) => [...earlier, request]),
      (error: Problem) => setProblem(error),
    );
  };

  if (tasks.problem) return <Failed problem={tasks.problem} again={tasks.again} />;
  if (!tasks.value) return <Waiting what="Reading tasks" />;
  const shown = tasks.value.items
    .filter((task) => `${task.kind} ${task.name}`.toLowerCase().includes(words.toLowerCase()))
    .sort((one, other) => compare(one, other, sort));
  return (
    <>
      <CaptureForm job={job} session={brief.key} kind="ops" />
      <CapturePanel
        stored={captures.value?.stored ?? []}
        live={job?.status.captures ?? captures.value?.live ?? []}
        asked={asked}
        running={job !== null}
      />
      {problem && <Failed problem={problem} again={() => setProblem(null)} />}
      <section aria-labelledby="tasks-title">
        <h2 id="tasks-title">Tasks</h2>
        <div class="controls" role="search">
          <label>
            Find
            <input type="search" value={words} onInput={(event) => change({ find: event.currentTarget.value }, false)} />
          </label>
          <span class="quiet" role="status">
            {shown.length} of {tasks.value.total}
          </span>
        </div>
        {tasks.value.total === 0 && <p class="quiet">No repeating work was seen.</p>}
        {shown.length > 0 && <TaskTable tasks={shown} sort={sort} {...(job ? { trace } : {})} />}
      </section>
    </>
  );
}

function compare(one: Task, other: Task, by: Column): number {
  if (by === "name") return one.name.localeCompare(other.name);
  return (other[by] ?? -Infinity) - (one[by] ?? -Infinity);
}

function TaskTable({ tasks, sort, trace }: { tasks: Task[]; sort: Column; trace?: (task: Task) => void }) {
  const head = (column: Column, title: string, numeric: boolean) => (
    <th key={column} class={`${numeric ? "number" : ""}${column === "p99_ns" ? " less" : ""}`} aria-sort={sort === column ? (numeric ? "descending" : "ascending") : "none"}>
      <button class="sort" onClick={() => change({ sort: column })}>
        {title}
      </button>
    </th>
  );
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            {head("name", "Task", false)}
            {COLUMNS.map(([column, title]) => head(column, title, true))}
            {trace && (
              <th>
                <span class="hidden">Trace</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={`${task.pid} ${task.kind} ${task.name} ${task.first_ns}`}>
              <td>
                <b>{task.name}</b> <span class="quiet">{task.kind}</span>
                {task.where && (
                  <small>
                    {task.where.file}:{task.where.line}
                  </small>
                )}
              </td>
              <td class="number">
                {task.exact ? "" : "≥ "}
                {format.count(task.count)}
              </td>
              <td class="number">{format.rate(task.rate_per_s)}</td>
              <td class="number">{format.lasting(task.total_ns)}</td>
              <td class="number">{format.ns(task.mean_ns)}</td>
              <td class="number">{format.ns(task.p50_ns)}</td>
              <td class="number">{format.ns(task.p95_ns)}</td>
              <td class="number less">{format.ns(task.p99_ns)}</td>
              <td class="number">{format.ns(task.max_ns)}</td>
              <td class="number">{task.outliers || ""}</td>
              <td class="number">{trend(task.trend_ratio)}</td>
              {trace && (
                <td>
                  <button onClick={() => trace(task)} aria-label={`Trace ${task.name}`}>
                    Trace
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function trend(ratio: number | null): string {
  if (ratio === null) return "";
  return ratio === 0 ? "steady" : format.signed(ratio);
}
