/** Charts on one shared time axis: the cursor of one is the cursor of all, and so is the part of the time that is shown
(?from=, ?to=, in seconds; drag to choose, double-click or "Whole run" to leave). */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import * as format from "../format";
import type { Series } from "../generated/api";
import { useScheme, useWidth } from "../hooks";
import { change } from "../router";
import { outliers, type Outlier } from "./slow_steps";

export type Columns = Series["columns"];

interface Line {
  key: string;
  label: string;
  color: string;
  limit?: boolean;
}

interface Plan {
  title: string;
  unit: string;
  time: string;
  lines: Line[];
  stacked?: boolean;
  /** Each value holds until the next one: drawn as steps, for a sloping line would show times that never were. */
  held?: boolean;
  log?: boolean;
  /** Slow steps are drawn as dots, which choose them. */
  dots?: boolean;
  /** The axis reaches at least so far: less than that is nothing. */
  least?: number;
  /** The axis is from the smallest value to the largest. */
  free?: boolean;
}

const held = uPlot.paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder;
const INK = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const HEIGHT = 130;

const line = (key: string, label: string, color: number): Line => ({ key, label, color: INK[color] ?? "--c1" });
const limit = (key: string, label: string): Line => ({ key, label, color: "--limit", limit: true });

const RESOURCES: Plan[] = [
  {
    title: "CPU",
    unit: "cores",
    time: "res_t",
    lines: [
      line("res:cpu_cores", "job", 0),
      line("res:others_cores", "others", 1),
      line("res:wait_cores", "waiting for a CPU", 2),
      limit("res:cpu_limit_cores", "CPU limit of the job"),
    ],
  },
  {
    title: "CPU in the kernel",
    unit: "%",
    time: "res_t",
    least: 1,
    lines: [line("res:kernel_percent", "kernel", 0), line("res:fault_percent", "page faults", 1)],
  },
  {
    title: "Memory",
    unit: "MiB",
    time: "res_t",
    lines: [line("res:rss_mb", "resident", 3), limit("res:memory_limit_mb", "cgroup limit")],
  },
  {
    title: "Disk",
    unit: "MB/s",
    time: "res_t",
    least: 0.1,
    lines: [line("res:read_mb_s", "read", 0), line("res:write_mb_s", "written", 1), limit("res:disk_limit_mb_s", "limit")],
  },
  {
    title: "Network",
    unit: "MB/s",
    time: "res_t",
    least: 0.1,
    lines: [line("res:net_in_mb_s", "in", 0), line("res:net_out_mb_s", "out", 1), limit("res:net_limit_mb_s", "link")],
  },
  {
    title: "Address space",
    unit: "MiB",
    time: "look_t",
    lines: [line("look:anonymous_mb", "anonymous", 3), line("look:huge_mb", "in huge pages", 1)],
  },
  { title: "Mappings", unit: "", time: "look_t", lines: [line("look:mappings", "mappings", 0)] },
  { title: "GPU", unit: "%", time: "res_t", lines: [line("res:gpu_busy_percent", "busy", 0)] },
  {
    title: "GPU memory",
    unit: "MiB",
    time: "res_t",
    lines: [line("res:gpu_reserved_mb", "reserved", 3), line("res:gpu_live_mb", "live", 1), limit("res:gpu_limit_mb", "device")],
  },
];

/** What the program logs by itself. */
function metrics(columns: Columns): Plan[] {
  const names = Object.keys(columns).flatMap((key) => (key.startsWith("metric:") ? [key.slice(7)] : []));
  return names.map((name) => ({ title: `${name} (metric)`, unit: "", time: `metric_t:${name}`, free: true, lines: [line(`metric:${name}`, name, 0)] }));
}

/** What there is to draw of a session. */
function plans(columns: Columns): Plan[] {
  const parts = Object.keys(columns).filter((key) => key.startsWith("anat:"));
  const all: Plan[] = [
    {
      title: "Step time",
      unit: "ms",
      time: "step_t",
      held: true,
      log: true,
      dots: true,
      lines: [line("step_ms_p50", "median", 0), line("step_ms_p95", "p95", 1), line("step_ms_max", "max", 2)],
    },
    {
      title: "The step",
      unit: "ms",
      time: "anat_t",
      stacked: true,
      held: true,
      lines: parts.map((key) => ({ key, label: format.component(key.slice(5)), color: `--part-${key.slice(5)}` })),
    },
    ...RESOURCES,
    ...metrics(columns),
  ];
  return all
    .map((plan) => ({ ...plan, lines: plan.lines.filter((l) => (columns[l.key]?.length ?? 0) > 1 && (l.limit || columns[l.key]?.some(Boolean))) }))
    .filter((plan) => plan.lines.some((l) => !l.limit));
}

/** `only`: the titles of those that are wanted, in their order. */
export function Charts({ columns, query, only }: { columns: Columns; query: URLSearchParams; only?: string[] }) {
  const all = plans(columns);
  const shown = only ? only.flatMap((title) => all.filter((plan) => plan.title === title)) : all;
  if (!shown.length) return null;
  const times = shown.flatMap((plan) => columns[plan.time] ?? []);
  const whole: [number, number] = [0, times.reduce((most, t) => Math.max(most, t), 0)];
  const from = Number.parseFloat(query.get("from") ?? "");
  const to = Number.parseFloat(query.get("to") ?? "");
  const range: [number, number] = from < to ? [from, to] : whole;
  const zoomed = range !== whole;
  return (
    <section aria-labelledby="time-title">
      <h2 id="time-title">Over time</h2>
      <div class="controls">
        <span class="quiet" role="status">
          {range[0].toFixed(1)} to {range[1].toFixed(1)} s since session start{zoomed ? "" : "; drag over a chart to zoom in"}
        </span>
        <button disabled={!zoomed} onClick={() => change({ from: null, to: null })}>
          Whole run
        </button>
      </div>
      <div class="charts">
        {shown.map((plan) => (
          <Chart key={plan.title} plan={plan} columns={columns} from={range[0]} to={range[1]} />
        ))}
      </div>
      {!only && <Histogram columns={columns} />}
    </section>
  );
}

function Chart({ plan, columns, from, to }: { plan: Plan; columns: Columns; from: number; to: number }) {
  const { place, width } = useWidth();
  const scheme = useScheme();
  const chart = useRef<uPlot | null>(null);
  const cut = cutAt(plan, columns);
  useEffect(() => {
    if (!place.current || !width) return;
    const made = new uPlot(options(plan, width, from, to, plan.dots ? outliers(columns) : [], cut), data(plan, columns), place.current);
    chart.current = made;
    return () => {
      made.destroy();
      chart.current = null;
    };
  }, [plan.title, columns, width, scheme, from, to]);
  return (
    <figure class="chart">
      <figcaption>
        <b>{plan.title}</b> <span class="quiet">
          {plan.unit}
          {plan.log && ", logarithmic"}
          {cut !== null && `; what is above ${format.short(cut)} is cut off, at most ${format.short(top(plan, columns))}`}
        </span>
        <span class="spoken">{summary(plan, columns)}</span>
      </figcaption>
      <div ref={place} class="plot" aria-hidden="true" />
    </figure>
  );
}

/** How many steady steps took how long; time is logarithmic, as the bins are. */
function Histogram({ columns }: { columns: Columns }) {
  const counts = columns.hist_count ?? [];
  const edges = columns.hist_ms_edges ?? [];
  const most = counts.reduce((high, count) => Math.max(high, count), 0);
  if (!most || edges.length !== counts.length + 1) return null;
  const [first, last] = [edges[0] ?? 0, edges[edges.length - 1] ?? 0];
  const time = (ms: number) => format.ns(ms * 1e6);
  const bins = counts.map((count, at) => ({ count, text: `${time(edges[at] ?? 0)} to ${time(edges[at + 1] ?? 0)}: ${format.plural(count, "step")}` }));
  const highest = bins[counts.indexOf(most)]?.text ?? "";
  return (
    <figure class="chart histogram">
      <figcaption>
        <b>Distribution of step times</b> <span class="quiet">steady steps; time is logarithmic; most: {highest}</span>
      </figcaption>
      <div class="bins" role="img" aria-label={`Distribution of step times, from ${time(first)} to ${time(last)}; most: ${highest}`}>
        {bins.map(({ count, text }) => (
          <i key={text} title={text} style={{ height: count ? `max(2px, ${(100 * count) / most}%)` : "0" }} />
        ))}
      </div>
      <div class="ends">
        <span>{time(first)}</span>
        <span>{time(Math.sqrt(first * last))}</span>
        <span>{time(last)}</span>
      </div>
    </figure>
  );
}

const MIB_PER_MB = 1e6 / 2 ** 20;

/** Memory is told in MiB, as everywhere on the page; the columns hold MB. */
function inUnit(plan: Plan, values: number[]): number[] {
  return plan.unit === "MiB" ? values.map((value) => value * MIB_PER_MB) : values;
}

/** What a chart says, for who does not see it. */
function summary(plan: Plan, columns: Columns): string {
  return plan.lines
    .map((l) => {
      const values = inUnit(plan, columns[l.key] ?? []);
      const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
      const most = values.reduce((high, value) => Math.max(high, value), values[0] ?? 0);
      return `${l.label}: mean ${format.short(mean)}, at most ${format.short(most)} ${plan.unit}`;
    })
    .join("; ");
}

function data(plan: Plan, columns: Columns): uPlot.AlignedData {
  const times = columns[plan.time] ?? [];
  const values = plan.lines.map((l) => inUnit(plan, columns[l.key] ?? []));
  if (!plan.stacked) return [times, ...values];
  const sums: number[][] = [];
  let below = times.map(() => 0);
  for (const own of values) {
    below = below.map((sum, at) => sum + (own[at] ?? 0));
    sums.push(below);
  }
  return [times, ...sums.reverse()];
}

const top = (plan: Plan, columns: Columns) => (data(plan, columns)[1] as number[]).reduce((most, value) => Math.max(most, value), 0);

/** Where a stack is cut off, so that one slow step does not make all others flat: if the highest is far above nearly all. */
function cutAt(plan: Plan, columns: Columns): number | null {
  if (!plan.stacked) return null;
  const sums = [...(data(plan, columns)[1] as number[])].sort((one, other) => one - other);
  const usual = sums[Math.floor(sums.length * USUAL)] ?? 0;
  return usual > 0 && top(plan, columns) > FAR * usual ? ROOM * usual : null;
}

const USUAL = 0.95;
const FAR = 4;
const ROOM = 1.5;

/** A number at an axis, however small. */
const tick = (value: number) => (Math.abs(value) >= 1 || value === 0 ? format.short(value) : `${Number(value.toPrecision(2))}`);

function options(plan: Plan, width: number, from: number, to: number, dots: Outlier[], cut: number | null): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const ink = (name: string) => style.getPropertyValue(name).trim() || style.getPropertyValue("--part-other").trim();
  const lines = plan.stacked ? [...plan.lines].reverse() : plan.lines;
  const axis = {
    stroke: ink("--quiet"),
    grid: { stroke: ink("--line"), width: 1 },
    ticks: { stroke: ink("--line"), width: 1 },
    font: "11px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    scales: { x: { time: false, min: from, max: to, auto: false }, y: plan.log ? { distr: 3 } : plan.free ? {} : { range: (_, __, most) => [0, cut ?? (Math.max(most * 1.05, plan.least ?? 0) || 1)] } },
    axes: [
      { ...axis, size: 24, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
      {
        ...axis,
        size: 56,
        values: (_, ticks) => ticks.map((value) => (value === null ? "" : tick(value))),
        ...(plan.log ? { grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades }, filter: decades } : {}),
      },
    ],
    series: [
      { label: "at", value: (_, at) => (at === null ? "" : `${at.toFixed(2)} s`) },
      ...lines.map((l, at) => ({
        label: l.label,
        stroke: ink(l.color),
        width: l.limit ? 1 : 1.5,
        ...(l.limit ? { dash: [5, 4] } : {}),
        ...(plan.stacked ? { fill: ink(l.color) } : {}),
        points: { show: false },
        ...(plan.held ? { paths: held } : {}),
        value: (chart: uPlot, _: number, series: number, index: number | null) => own(plan, chart, lines.length, at, series, index),
      })),
    ],
    cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false }, points: { size: 5 } },
    legend: { live: true },
    hooks: {
      setSelect: [
        (chart) => {
          if (chart.select.width < 4) return;
          const low = chart.posToVal(chart.select.left, "x");
          const high = chart.posToVal(chart.select.left + chart.select.width, "x");
          change({ from: low.toFixed(3), to: high.toFixed(3) });
        },
      ],
      ready: [
        (chart) => chart.over.addEventListener("dblclick", () => change({ from: null, to: null })),
        (chart) => chart.over.addEventListener("click", (event) => choose(chart, dots, event)),
      ],
      draw: [(chart) => drawDots(chart, dots, ink("--c2"))],
    },
  };
}

/** Of a logarithmic axis' splits, the powers of ten. */
const decades = (_: uPlot, splits: number[]) => splits.map((value) => (Math.abs(Math.log10(value) % 1) < 1e-6 ? value : null));

const DOT = 3;
const REACH = 10;

function drawDots(chart: uPlot, dots: Outlier[], color: string) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { at, ms } of dots) {
    const [x, y] = [chart.valToPos(at, "x", true), chart.valToPos(ms, "y", true)];
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.arc(x, y, DOT * devicePixelRatio, 0, 2 * Math.PI);
    ctx.stroke();
  }
  ctx.restore();
}

/** A click near a dot chooses its step. */
function choose(chart: uPlot, dots: Outlier[], event: MouseEvent) {
  const { left, top } = chart.over.getBoundingClientRect();
  const far = (dot: Outlier) => Math.hypot(chart.valToPos(dot.at, "x") - (event.clientX - left), chart.valToPos(dot.ms, "y") - (event.clientY - top));
  const [nearest] = [...dots].sort((one, other) => far(one) - far(other));
  if (!nearest || far(nearest) > REACH) return;
  change({ step: `${nearest.number}` });
  document.getElementById("slow-title")?.scrollIntoView({ block: "start" });
}

/** A line's own value: in a stack, without what lies below it. */
function own(plan: Plan, chart: uPlot, lines: number, at: number, series: number, index: number | null): string {
  if (index === null) return "";
  const value = chart.data[series]?.[index] ?? 0;
  const below = plan.stacked && at + 1 < lines ? (chart.data[series + 1]?.[index] ?? 0) : 0;
  return format.short((value as number) - (below as number));
}
