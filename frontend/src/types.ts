/** What the REST interface answers, as far as the page uses it (docs/rest.md; /api/v1/openapi.json is the whole). */

export interface Page<T> {
  items: T[];
  total: number;
  offset: number;
  next_offset: number | null;
}

export interface TopFinding {
  code: string;
  title: string;
  severity: Severity;
  cost_ratio: number;
  place: string;
}

export type Severity = "high" | "medium" | "low" | "info" | "error" | "warning";

export interface LiveCapture {
  request: string;
  asked_by: string;
  state: string;
  text: string;
  title: string;
  number: number;
  steps: number;
  ratio: number | null;
  recorded_ns: number;
  cost_ns: number;
  bytes: number;
}

export interface Status {
  state: string;
  command: string[];
  framework: string;
  session: string;
  steps: number;
  step_title: string;
  steps_per_s: number | null;
  samples_per_s: number | null;
  anatomy: { component: string; ratio: number }[];
  top: TopFinding | null;
  findings: number;
  started_unix_s: number;
  updated_unix_s: number;
  analysed_unix_s: number;
  captures: LiveCapture[];
  captures_ratio: number;
  sidecar_core_ratio: number;
  problems: string[];
}

export interface Job {
  pid: number;
  name: string;
  user: string;
  state: string;
  session: string;
  status: Status;
}

export interface Brief {
  key: string;
  name: string;
  path: string;
  state: string;
  command: string[];
  framework: string;
  mode: string;
  host: string;
  started_unix_s: number;
  wall_ns: number;
  exit_code: number | null;
  steps: number;
  steps_per_s: number | null;
  samples_per_s: number | null;
  findings: number | null;
  top: TopFinding | null;
  pid: number | null;
  problem: string;
}

export interface Place {
  file: string;
  line: number;
  end_line: number | null;
  function: string;
}

export interface Evidence {
  metric: string;
  value: number;
  unit: string;
  threshold: number | null;
  refs: string[];
}

export interface Finding {
  code: string;
  name: string;
  title: string;
  severity: Severity;
  confidence: number;
  symptom: string;
  cause: string;
  introduced_stage: string;
  exposed_stage: string;
  pipeline_stage: string;
  where: Place[];
  evidence: Evidence[];
  cost: { ratio: number; low: number; high: number; ns_per_step: number; basis: string };
  remedies: { id: string; text: string; safety: string; what_if: string | null; edit: string | null }[];
  explanation: string;
}

export interface Component {
  component: string;
  ratio: number;
  ns_per_step: number;
  name: string;
}

export interface Detail {
  brief: Brief;
  summary: {
    command: string[];
    framework: string;
    steps: number;
    throughput: { samples_per_s: number | null; steps_per_s: number | null };
    wall_ns: number;
    processes: number;
    step_times: { count: number; mean_ns: number; p50_ns: number; p95_ns: number; p99_ns: number; source: string } | null;
  };
  overhead: { ratio: number | null; low: number | null; high: number | null; captures_ratio: number };
  anatomy: Component[];
  findings: number;
  tasks: number;
  captures: number;
  checked: Record<string, number>;
  checked_said: string[];
  nothing_said: string;
  imported: { lines: { label: string; text: string }[]; steps: string; parts: { part: string; word: string; ratio: number }[] } | null;
  diagnostics: string[];
}

export interface Task {
  kind: string;
  name: string;
  pid: number;
  count: number;
  exact: boolean;
  timed: number;
  first_ns: number;
  rate_per_s: number | null;
  total_ns: number;
  mean_ns: number;
  p50_ns: number;
  p95_ns: number;
  p99_ns: number;
  max_ns: number;
  outliers: number;
  trend_ratio: number | null;
  where: Place | null;
}

export interface StoredCapture {
  id: string;
  kind: string;
  outcome: string;
  text: string;
  asked_by: string;
  request: string;
  title: string;
  at_ns: number;
  steps: number;
  ratio: number | null;
  bytes: number;
  cost_ns: number;
}

export interface Captures {
  stored: StoredCapture[];
  live: LiveCapture[];
}

export interface Source {
  file: string;
  first: number;
  lines: string[];
  total: number;
}

export type Columns = Record<string, number[]>;

export interface Flame {
  event: string;
  unit: string;
  weight: number;
  samples: number;
  lost: number;
}

/** Function, file, line, module, kind, whether the name is known: all but line and kind by number of `strings`. */
export type StackFrame = [number, number, number, number, number, number];

export interface StackTree {
  event: string;
  unit: string;
  window: string;
  samples: number;
  weight: number;
  unresolved_ratio: number;
  health: string[];
  doubtful: boolean;
  merged: string;
  kinds: { kind: number; name: string; text: string; ratio: number }[];
  strings: string[];
  frames: StackFrame[];
  parent: number[];
  frame: number[];
  own: number[];
}

export interface CodeLine {
  line: number;
  ratio: number;
  op_ratio: number;
  findings: number[];
}

export interface CodeFile {
  file: string;
  lines: number;
  ratio: number;
  op_ratio: number;
  known: CodeLine[];
}

export interface MemoryRegion {
  start: number;
  end: number;
  cell_bytes: number;
  mapped: number[];
  resident: number[];
  huge: number[];
  name: string;
  resident_bytes: number;
}

export interface MemoryShown {
  map: {
    pid: number;
    command: string[];
    resident_bytes: number;
    anonymous_bytes: number;
    huge_bytes: number;
    page_table_bytes: number;
    mappings: number;
    sizes: { mappings: number; resident_bytes: number; huge_bytes: number }[];
    looks: { at_ns: number; mappings: number; resident_bytes: number; anonymous_bytes: number; huge_bytes: number }[];
    regions: MemoryRegion[];
    hidden_bytes: number;
  };
  huge_pages: string[];
  layout: string[];
  faults: string;
  growth: string;
  kernel_work: string;
  sizes: string[];
}

export interface StackChange {
  function: string;
  file: string;
  module: string;
  own_before: number;
  own_after: number;
  own_text: string;
  total_before: number;
  total_after: number;
  total_text: string;
}

export interface Comparison {
  before: Brief;
  after: Brief;
  events: string[];
  stacks: { event: string; unit: string; verdict: string; about: string[]; changes: StackChange[]; more: number } | null;
  problem: string;
}
