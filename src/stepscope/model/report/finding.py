"""Findings and the report: public API, schema ``stepscope.report/1`` (additions only).

``docs/schemas/report-1.json`` is generated from these structs. Words: DESIGN 3.4, the codebook of the FSE'22 study.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from stepscope.model.report.memory_map import MemoryMap
from stepscope.model.report.op_summary import OpTraceSummary, TracedSteps
from stepscope.model.report.op_table import OpTable
from stepscope.model.report.overhead import Overhead
from stepscope.model.report.process_roles import ProcessSummary
from stepscope.model.report.record_kinds import TaskKind
from stepscope.model.report.step_summary import MakerKind, StepChoice, StepTimes, Throughput
from stepscope.model.structs import Struct

SCHEMA = "stepscope.report/1"

Severity = Literal["high", "medium", "low", "ask", "info", "error", "warning"]
"""By measured cost: high, medium, low, info; ask: one command decides it. Of the source: error, warning, info."""
Origin = Literal["run", "static", "joined"]
"""run: a detector saw it in a session. static: a rule saw it in the source. joined: both did."""
Basis = Literal["measured", "modelled", "prior", "unknown"]
Safety = Literal["safe", "review", "unsafe"]
PipelineStage = Literal[
    "raw-input",
    "preprocessing",
    "host-to-device",
    "forward-backward",
    "gradient-sharing",
    "device-to-host",
    "output-processing",
    "storage",
    "none",
]
Stage = Literal[
    "environment setting",
    "initialization",
    "data preparation",
    "model building",
    "training",
    "evaluation",
    "hyper parameter tuning",
    "prediction",
    "unknown",
]
Symptom = Literal[
    "Time: slow execution time",
    "Time: slow initialization time",
    "Time: increasing time over time",
    "Time: program hang",
    "Memory: out of memory",
    "Memory: memory leak",
    "Memory: abnormal GPU memory usage",
    "Processor: not using GPU",
    "Processor: abnormal GPU utilization",
    "Processor: abnormal CPU utilization",
    "unknown",
]
Cause = Literal[
    "API: not using efficient API",
    "API: inefficient API usage",
    "API: not using batch API",
    "Model: confusion with computation model",
    "Model: improper hyper parameter",
    "Model: improper model parameter",
    "Model: inefficient model structure",
    "Data: inefficient data transmission",
    "Data: improper data input",
    "Data: inefficient data preprocessing",
    "Library: buggy library version",
    "Library: mismatched library version",
    "Hardware: hardware and code mismatch",
    "Hardware: hardware and library mismatch",
    "Hardware: improper configuration",
    "System: allocator",
    "System: memory layout",
    "System: scheduling",
    "System: network",
    "Python: interpreter overhead",
    "unknown",
]
Outcome = Literal["found", "clear", "undecided", "not-applicable", "failed"]


class Place(Struct, frozen=True, kw_only=True):
    """A range of source lines. ``file`` is relative to the job's working directory where it lies below it."""

    file: str
    line: int
    end_line: int | None = None
    function: str = ""
    column: int | None = None
    """From 1, in characters; null where only lines are known."""
    end_column: int | None = None
    """Exclusive."""
    cell: int | None = None
    """Of a notebook: the cell's number from 1; ``line`` then counts inside of it."""


class Evidence(Struct, frozen=True, kw_only=True):
    """A measured value. ``refs``: what the page opens at a click; "capture:ID": the capture that it was read from."""

    metric: str
    value: float
    unit: str
    threshold: float | None = None
    refs: tuple[str, ...] = ()


class Cost(Struct, frozen=True, kw_only=True):
    """What the remedy is predicted to remove. ``ratio`` of steady wall time, with its interval.

    What is paid once (exposed stage "initialization") is a share of the time from model building to the last step.
    ``ns_per_step``: of the mean steady step; what is paid once is spread over all steps of the run.
    """

    ratio: float
    low: float
    high: float
    ns_per_step: int = 0
    basis: Basis = "measured"
    exclusive_ratio: float | None = None
    """At most so much comes on top of the findings before it (docs/reports.md); null outside of a run's report."""


class Remedy(Struct, frozen=True, kw_only=True):
    """What to change. ``what_if``: the command that measures it, where it can be tried without a change of the code."""

    id: str
    text: str
    safety: Safety = "review"
    what_if: str | None = None
    rule: str = ""
    """The rule of the static checker that advises it; "" for a detector's own advice."""
    fix: str = ""
    """What ``check --fix`` does (safety "safe"), or with ``--unsafe-fixes`` ("unsafe"): "Add drop_remainder=True"."""
    edit: str | None = None
    """The command that shows the edit, from the job's working directory, where the checker can make it."""


class Finding(Struct, frozen=True, kw_only=True):
    """One cause of lost time, with its evidence and its cost."""

    code: str
    name: str
    title: str
    severity: Severity
    confidence: float
    symptom: Symptom
    cause: Cause
    introduced_stage: Stage
    exposed_stage: Stage
    pipeline_stage: PipelineStage
    where: tuple[Place, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    cost: Cost
    remedies: tuple[Remedy, ...] = ()
    explanation: str = ""
    """Two or three sentences more than the title, for the long report."""
    origin: Origin = "run"
    """Of a static one in a run's report the cost is what was measured at its lines; a joined one has the detector's."""
    related_codes: tuple[str, ...] = ()
    """Rules or detectors that see the same from the other side. Of a joined finding: the rules that did."""
    seen: bool | None = None
    """Of a static finding in a run's report: whether the run saw its lines. Null elsewhere."""


class Checked(Struct, frozen=True, kw_only=True):
    """What became of one detector. ``missing`` names signals, ``hint`` the command or version that provides them."""

    detector: str
    name: str
    outcome: Outcome
    missing: tuple[str, ...] = ()
    hint: str = ""
    capture: str = ""
    """Of an undecided one: the kind of capture that would decide it ("ops"); "" where none would."""


class Diagnostic(Struct, frozen=True, kw_only=True):
    """A problem of stepscope's own: lost records, a probe that did not attach, no rights."""

    code: str
    text: str


class Component(Struct, frozen=True, kw_only=True):
    """A share of the mean steady step. Components add up to the step's wall time."""

    component: str
    """Its name: see ``model.report.components``."""
    pipeline_stage: PipelineStage
    ratio: float
    ns_per_step: int
    name: str = ""
    """For callbacks and other Python: the largest contributor."""
    where: Place | None = None


class StageShare(Struct, frozen=True, kw_only=True):
    """One of the eight pipeline stages. ``ratio`` None: could not look; ``basis`` says on what it rests or why not."""

    stage: PipelineStage
    ratio: float | None
    basis: str


class InferenceSetup(Struct, frozen=True, kw_only=True):
    """How a session of ONNX Runtime was set up."""

    model: str
    """Its file, or where it came as bytes its graph's name."""
    pid: int
    providers: tuple[str, ...] = ()
    intra_op_threads: int = 0
    """0: one for each physical core."""
    inter_op_threads: int | None = None
    """Null: ops run one after the other."""
    spins: bool = True
    """Threads of the intra-op pool spin while they wait for work."""
    arena: bool = True
    """Tensors are in its arena; else malloc's."""
    where: Place | None = None


class StepMaker(Struct, frozen=True, kw_only=True):
    """Calls at one place that are steps of one kind. Threads and processes that train alike are a maker each."""

    kind: MakerKind
    """step: the program says no more than that it repeats. call: it changes no variable, and another maker trains."""
    title: str
    """What is called: "Keras fit", "Keras predict", "tf.function train_step"."""
    place: Place | None = None
    """Where user code calls it most, or where it is defined."""
    pid: int
    threads: int = 1
    """Threads that call it."""
    count: int
    """All of its steps, those included that were only counted."""
    rate: float | None = None
    """Steps a second, all threads together, over the time in which it was at work."""
    samples_per_s: float | None = None
    """Null where it is not known what a step holds."""
    main: bool = False
    """What ``session.steps`` and ``session.throughput`` are about; several where they train alike."""


class SessionSummary(Struct, frozen=True, kw_only=True):
    """What was run."""

    id: str
    command: tuple[str, ...]
    framework: str
    hosts: int
    steps: int
    throughput: Throughput
    wall_ns: int = 0
    exit_code: int | None = None
    processes: int = 1
    step_times: StepTimes | None = None
    members: tuple[ProcessSummary, ...] = ()
    """The measured processes, in the order in which they started."""
    inference: tuple[InferenceSetup, ...] = ()
    step_makers: tuple[StepMaker, ...] = ()
    """All that makes steps; ``steps`` and ``throughput`` are those of the main ones."""
    step_choice: tuple[StepChoice, ...] = ()
    """Why these are the main ones: the rules that left something out, in their order."""


class TaskPart(Struct, frozen=True, kw_only=True):
    """A part of a task's calls that something was added to: what the hooks of a MonitoredSession fetched besides."""

    text: str
    count: int


class Task(Struct, frozen=True, kw_only=True):
    """Something that the job does again and again: a Session.run, a tf.function, a Keras loop, a request, a span.

    ``count`` and ``total_ns`` are of all calls, those that were only counted included; quantiles, outliers and trend
    are of the ``timed`` ones.
    """

    kind: TaskKind
    name: str
    """Session.run: what the user fetched. tf.function, span: its name. Keras: the loop or its compiled function."""
    pid: int
    """The process that did it."""
    count: int
    exact: bool = True
    """False when records of this process were lost: ``count`` is the least that it can have been."""
    timed: int
    """Calls with a time of their own. Less than ``count`` when a job is so fast that most calls are only counted."""
    first_ns: int
    last_ns: int
    """Start of the first call and end of the last one, since session start."""
    rate_per_s: float | None = None
    """Calls a second from the first to the last; null for a single one."""
    total_ns: int
    """Time of all calls, ``usual_ns`` for each that was only counted. Tasks may run inside of others: totals do not
    add up."""
    mean_ns: int
    usual_ns: int = 0
    """Mean without the slow first calls and those that traced a function."""
    p50_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    outliers: int
    """Calls that took more than twice the median and lie far above the rest (Tukey's outer fence)."""
    trend_ratio: float | None = None
    """Change of the median call time over the run, as a share of it: 0.3 is 30 % slower at the end. 0: none that
    stands out of the noise. Null: too few timed calls."""
    where: Place | None = None
    """Where it is defined, or where the user calls it."""
    added: tuple[TaskPart, ...] = ()
    """Session.run in a MonitoredSession: what its hooks fetched in the same runs, each with its number of runs."""


class LineHeat(Struct, frozen=True, kw_only=True):
    """What a line of the user's code is known to cost: docs/reports.md says how."""

    file: str
    """As places name it."""
    line: int
    ratio: float
    """Of the steady wall time; work inside of compiled calls is no line's."""


class SourceCheck(Struct, frozen=True, kw_only=True):
    """What the static checker says of the sources that the session holds, beside what stands in the findings."""

    tensorflow: str
    """The version that it checked for: the job's, "2.21"."""
    files: int
    lines: int
    rules: int
    findings: tuple[Finding, ...] = ()
    """Severity info: on lines that the run did not see, or that it did not see to cost anything. At most 200."""
    not_shown: int = 0
    """More of them."""
    left_out: tuple[str, ...] = ()
    """Files that were not checked, for want of time or because they cannot be, with the reason."""
    command: str = ""
    """What shows ``findings`` again, from the job's working directory; "" without any."""


class Report(Struct, frozen=True, kw_only=True):
    """The whole report."""

    schema: str = SCHEMA
    session: SessionSummary
    overhead: Overhead
    anatomy: tuple[Component, ...]
    stages: tuple[StageShare, ...] = ()
    findings: tuple[Finding, ...]
    checked: tuple[Checked, ...]
    diagnostics: tuple[Diagnostic, ...]
    tasks: tuple[Task, ...] = ()
    """Of all processes, by total time, at most 1,000."""
    ops: OpTable | None = None
    """Null where the session holds no op trace."""
    line_heat: tuple[LineHeat, ...] = ()
    """The costliest lines, at most 100, from 0.5 %."""
    source_check: SourceCheck | None = None
    """Null where the session holds no sources, or no TensorFlow or Keras was used."""
    op_traces: tuple[OpTraceSummary, ...] = ()
    traced: TracedSteps | None = None
    """Null where the session holds no op trace."""
    memory: tuple[MemoryMap, ...] = ()
    """Address spaces of the processes that were looked at, at most 8; the one with the most memory first."""
    series: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    """Small series for charts, times in seconds since session start (keys: docs/report-schema.md)."""


def severity_of(ratio: float) -> Severity:
    """Severity from the share of steady wall time: high from 25 %, medium 10 %, low 3 %, else info (DESIGN 3.3)."""
    for floor, severity in ((0.25, "high"), (0.10, "medium"), (0.03, "low")):
        if ratio >= floor:
            return severity  # type: ignore[return-value]
    return "info"
