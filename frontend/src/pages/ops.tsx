/** Ops: where the op time of a capture went, by op, type, layer, line or device: the report's own table. State: ?by=, ?of= all, model
or input, ?sort=, ?find=. */
import { useLoaded } from "../data";
import * as format from "../format";
import type { OpTable } from "../generated/api";
import { CaptureForm } from "../parts/capture_form";
import { Failed, Waiting } from "../parts/common";
import { change } from "../router";
import type { View } from "./view";

const WAYS = ["op", "type", "layer", "line", "device"] as const;
type Way = (typeof WAYS)[number];

const PARTS = ["all", "model", "input"] as const;
type Part = (typeof PARTS)[number];
const PART_WORDS: Record<Part, string> = { all: "All ops", model: "The model's", input: "The input's" };

type Column = "name" | "calls" | "ns" | "mean" | "step" | "ratio";

const COLUMNS: [Column, string][] = [
  ["calls", "Calls"],
  ["ns", "Total"],
  ["mean", "Mean call"],
  ["step", "Per step"],
  ["ratio", "Share"],
];

interface Row {
  name: string;
  /** What it is, in a few words. */
  about: string;
  file: string;
  line: number;
  calls: number;
  ns: number;
  ratio: number;
  /** What of the graph of a step it is. */
  show?: Record<string, string>;
}

export function OpsPage({ brief, job, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const ops = useLoaded<OpTable>(`${path}/ops`, { stamp });
  if (ops.problem?.status === 404 || ops.problem?.status === 422)
    return (
      <section aria-labelledby="ops-title">
        <h1 id="ops-title">Ops</h1>
        <p class="quiet">{ops.problem.message}</p>
        <CaptureForm job={job} session={brief.key} kind="ops" />
      </section>
    );
  if (ops.problem) return <Failed problem={ops.problem} again={ops.again} />;
  if (!ops.value) return <Waiting what="Reading the op trace" />;
  const table = ops.value;
  const by = WAYS.find((way) => way === query.get("by")) ?? "op";
  const sort = (query.get("sort") ?? "ns") as Column;
  const words = query.get("find") ?? "";
  const splits = table.input_ratio > 0 && by !== "type" && by !== "device";
  const part = splits ? (PARTS.find((one) => one === query.get("of")) ?? (by === "layer" ? "model" : "all")) : "all";
  const whole = { all: 1, model: 1 - table.input_ratio, input: table.input_ratio };
  const rows = rowsOf(table, by, part, whole[part]);
  const shown = rows.filter((row) => text(row).includes(words.toLowerCase())).sort((one, other) => compare(one, other, sort));
  return (
    <section aria-labelledby="ops-title">
      <h1 id="ops-title">Ops</h1>
      <p class="quiet">
        {format.lasting(table.ns)} of op time over all threads and devices
        {table.steps > 0 && ` in ${format.plural(table.steps, "traced step")}`}{table.begin_ns > 0 && `, captured at ${format.lasting(table.begin_ns)}`};{" "}
        {format.percent(table.named_ratio)} of it attributed to lines and layers.
        {table.input_ratio > 0 && ` ${format.percent(table.input_ratio)} of it is the input pipeline's, on threads beside the step.`}
        {table.steps > 0 && " Ops of a step that the capture cut at its edge are counted too."}
      </p>
      <CaptureForm job={job} session={brief.key} kind="ops" />
      <div class="controls" role="search">
        <span role="group" aria-label="Group by">
          {WAYS.map((way) => (
            <button key={way} aria-pressed={way === by} onClick={() => change({ by: way === "op" ? null : way })}>
              By {way}
            </button>
          ))}
        </span>
        {splits && (
          <span role="group" aria-label="Whose ops">
            {PARTS.map((one) => (
              <button key={one} aria-pressed={one === part} onClick={() => change({ of: one })}>
                {PART_WORDS[one]} {one !== "all" && format.percent(whole[one])}
              </button>
            ))}
          </span>
        )}
        <label>
          Find
          <input type="search" value={words} onInput={(event) => change({ find: event.currentTarget.value }, false)} />
        </label>
        <span class="quiet" role="status">
          {shown.length} of {rows.length}
        </span>
      </div>
      {shown.length > 0 && <Rows rows={shown} by={by} sort={sort} steps={table.steps} here={path} part={part} />}
    </section>
  );
}

interface RowsProps {
  rows: Row[];
  by: Way;
  sort: Column;
  steps: number;
  here: string;
  part: Part;
}

const SHARES: Record<Part, string> = { all: "Share", model: "Of the model's", input: "Of the input's" };

function Rows({ rows, by, sort, steps, here, part }: RowsProps) {
  const head = (column: Column, title: string, numeric: boolean) => (
    <th key={column} class={numeric ? "number" : ""} aria-sort={sort === column ? (numeric ? "descending" : "ascending") : "none"}>
      <button class="sort" onClick={() => change({ sort: column })}>
        {title}
      </button>
    </th>
  );
  return (
    <div class="table">
      <table class="ops">
        <thead>
          <tr>
            {head("name", by[0]?.toUpperCase() + by.slice(1), false)}
            {COLUMNS.filter(([column]) => steps > 0 || column !== "step").map(([column, title]) => head(column, column === "ratio" ? SHARES[part] : title, true))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.name} ${row.about} ${row.file} ${row.line}`}>
              <td>
                <b>{row.name}</b> {row.about && <span class="quiet">{row.about}</span>}
                {row.show && (
                  <small>
                    <a href={`${here}/graph?${new URLSearchParams(row.show)}`} aria-label={`${row.name} in the graph`}>
                      in the graph
                    </a>
                  </small>
                )}
                {row.file && (
                  <small>
                    <a href={`${here}/code?${new URLSearchParams({ file: row.file, line: String(row.line) })}`}>
                      {row.file}:{row.line}
                    </a>
                  </small>
                )}
              </td>
              <td class="number">{row.calls ? format.count(row.calls) : ""}</td>
              <td class="number">{format.ns(row.ns)}</td>
              <td class="number">{row.calls ? format.ns(row.ns / row.calls) : ""}</td>
              {steps > 0 && <td class="number">{format.ns(row.ns / steps)}</td>}
              <td class="number">{format.percent(row.ratio)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The rows of one grouping; what the report's table leaves out is the last one, so that each grouping adds up to all op time. */
function rowsOf(table: OpTable, by: Way, part: Part, whole: number): Row[] {
  const rows = new Map<string, Row>();
  const add = (key: string, row: Row) => {
    const known = rows.get(key);
    if (!known) rows.set(key, row);
    else rows.set(key, { ...known, calls: known.calls + row.calls, ns: known.ns + row.ns, ratio: known.ratio + row.ratio });
  };
  const asked = <T extends { input: boolean }>(all: T[]) => all.filter((one) => part === "all" || one.input === (part === "input"));
  const none = { about: "", file: "", line: 0 };
  if (by === "type") for (const one of table.types) add(one.type, { ...none, ...one, name: one.type });
  if (by === "device") for (const one of table.ops) add(one.device, { ...none, ...one, name: one.device || "not known", about: "", file: "", line: 0 });
  if (by === "op")
    for (const one of asked(table.ops)) {
      const about = [one.type, one.gradient ? "gradient" : "", one.input ? "input pipeline" : "", one.layer && `layer ${one.layer}`, one.device].filter(Boolean).join(", ");
      const show = one.input || !one.type ? {} : { show: { show: `${one.name}:${one.type}`, trace: table.trace } };
      add(`${one.name} ${one.type} ${one.device} ${one.file} ${one.line}`, { ...one, about, ...show });
    }
  for (const one of by === "layer" || by === "line" ? asked(table.makers) : []) {
    const place = one.file ? `${one.file}:${one.line}` : "";
    const name = by === "layer" ? one.layer || (one.input ? "input pipeline" : "no layer") : place || "no known line";
    const about = by === "layer" ? one.layer_type : one.function;
    const alone = by === "layer" && !one.layer;
    const show = by === "layer" && one.layer && !one.input ? { show: { find: one.layer, trace: table.trace } } : {};
    add(name, { ...one, name, about: alone ? "" : about, ...(alone ? none : {}), ...show });
  }
  const found = [...rows.values()];
  const rest = whole - found.reduce((sum, row) => sum + row.ratio, 0);
  if (rest >= 0.0005) found.push({ ...none, name: "all others", calls: 0, ns: rest * table.ns, ratio: rest });
  return found.map((row) => ({ ...row, ratio: row.ratio / (whole || 1) }));
}

const text = (row: Row) => `${row.name} ${row.about} ${row.file}:${row.line}`.toLowerCase();

function compare(one: Row, other: Row, by: Column): number {
  if (by === "name") return one.name.localeCompare(other.name);
  const value = (row: Row) => (by === "mean" ? row.ns / (row.calls || Infinity) : by === "step" ? row.ns : row[by]);
  return value(other) - value(one);
}
