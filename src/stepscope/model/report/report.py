"""Findings and the report: public API, schema ``stepscope.report/1`` (additions only).

``docs/schemas/report-1.json`` is generated from these structs. Words: decision 0003, the codebook of the FSE'22 study.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from stepscope.model.report.cluster import Cluster
from stepscope.model.report.input_bound import InputBound
from stepscope.model.report.input_tree import InputTree
from stepscope.model.report.ledger import LedgerEntry
from stepscope.model.report.limits import Limits
from stepscope.model.report.machine.clocks import HostClockOffset
from stepscope.model.report.machine.links import NetworkLink
from stepscope.model.report.machine.memory_map import MemoryMap
from stepscope.model.report.machine.memory_room import MemoryRoom
from stepscope.model.report.machine.system_calls import SystemCallsSummary
from stepscope.model.report.op_summary import OpTraceSummary, StackFile, TracedSteps
from stepscope.model.report.op_table import OpTable
from stepscope.model.report.overhead import Overhead
from stepscope.model.report.process_roles import ProcessSummary
from stepscope.model.report.slow_steps import SlowStep
from stepscope.model.report.step_summary import MakerKind, StepChoice, StepTimes, Throughput
from stepscope.model.report.task import Task
from stepscope.model.report.turns import Turns
from stepscope.tables.findings import Checked, Diagnostic, Finding, PipelineStage
from stepscope.tables.place import Place
from stepscope.tables.structs import Struct

SCHEMA = "stepscope.report/1"


class Component(Struct, frozen=True, kw_only=True):
    """A share of the steps that were timed. ``ns_per_step``: the same of the mean of all steps."""

    component: str
    """Name of the component, see ``model.report.components``."""
    pipeline_stage: PipelineStage
    ratio: float
    ns_per_step: int
    name: str = ""
    """Name of the largest contributor, for callbacks and other Python."""
    where: Place | None = None
    basis: str = ""
    """How the share was measured, and what else is in it, where records alone do not say."""


class StageShare(Struct, frozen=True, kw_only=True):
    """One of the eight pipeline stages. ``ratio`` None: not measured. ``basis``: how it was measured, or why not."""

    stage: PipelineStage
    ratio: float | None
    basis: str


class InferenceSetup(Struct, frozen=True, kw_only=True):
    """The settings of an ONNX Runtime session."""

    model: str
    """File of the model, or the name of its graph if it came as bytes."""
    pid: int
    providers: tuple[str, ...] = ()
    intra_op_threads: int = 0
    """Number of intra-op threads; 0: one per physical core."""
    inter_op_threads: int | None = None
    """Number of inter-op threads; null: ops run one after the other."""
    spins: bool = True
    """Flag: threads of the intra-op pool spin while they wait for work."""
    arena: bool = True
    """Flag: tensors are in the session's arena; else in malloc's memory."""
    where: Place | None = None


class StepMaker(Struct, frozen=True, kw_only=True):
    """Calls at one place that are steps of one kind. Threads and processes that train alike are separate makers."""

    kind: MakerKind
    """Kind. step: known only to repeat. call: it changes no variable, and another maker trains."""
    title: str
    """Title of the called function: "Keras fit", "Keras predict", "tf.function train_step"."""
    place: Place | None = None
    """Place where user code calls it most, or where it is defined."""
    pid: int
    threads: int = 1
    """Number of threads that call it."""
    count: int
    """Number of all its steps, including those that were only counted."""
    rate: float | None = None
    """Steps per second, of all threads together, over the time in which it was active."""
    samples_per_s: float | None = None
    """Samples per second; null if the content of a step is unknown."""
    main: bool = False
    """Flag: the subject of ``session.steps`` and ``session.throughput``; several if they train alike."""
    step_ratio: float | None = None
    """Share of the steady steps that lies within its calls; null if it runs on another thread than they do."""


JobEnd = Literal["code", "memory", "clean", "outside", "unknown"]


class SessionSummary(Struct, frozen=True, kw_only=True):
    """The run."""

    id: str
    command: tuple[str, ...]
    framework: str
    """Frameworks with their versions; "none": there is none; "": it is in what cannot be read."""
    hosts: int
    steps: int
    steps_at_least: bool = False
    """Flag: the job was killed while its steps were only counted, so that the last of them are not in ``steps``."""
    throughput: Throughput
    wall_ns: int = 0
    exit_code: int | None = None
    end: JobEnd = "unknown"
    """How the job's end was observed. code: ``exit_code`` says it. memory: killed by the kernel for lack of
    memory. clean: no launcher saw it, but all processes ran their exit handlers. outside: observed for some time
    (``attach``). unknown: killed, or lost sight of."""
    processes: int = 1
    member: str = ""
    """Task of a cluster that the measured process is: "worker 1 of 3", counted from 0; "" if it is none, or they are
    several."""
    step_times: StepTimes | None = None
    members: tuple[ProcessSummary, ...] = ()
    """Measured processes, in the order of their start."""
    inference: tuple[InferenceSetup, ...] = ()
    step_makers: tuple[StepMaker, ...] = ()
    """All makers of steps; ``steps`` and ``throughput`` are those of the main ones."""
    step_choice: tuple[StepChoice, ...] = ()
    """Reasons for the choice of the main ones: the rules that excluded something, in their order."""
    gpu_busy_ratio: float | None = None
    """Share of the steady steps in which a kernel ran, mean over the GPUs; null: none was sampled."""


class LineHeat(Struct, frozen=True, kw_only=True):
    """The known cost of a line of the user's code: docs/reports.md says how."""

    file: str
    """Path as in places."""
    line: int
    ratio: float
    """Share of the steady wall time; work inside compiled calls belongs to no line."""


class SourceCheck(Struct, frozen=True, kw_only=True):
    """Results of the static checker for the session's sources, other than those in the findings."""

    tensorflow: str
    """TensorFlow version that it checked for: the job's, "2.21"."""
    files: int
    lines: int
    rules: int
    findings: tuple[Finding, ...] = ()
    """Findings of severity info: on lines that the run did not see, or did not see to cost anything. At most 200."""
    not_shown: int = 0
    """Number of further ones."""
    left_out: tuple[str, ...] = ()
    """Files that were not checked, for lack of time or because it is impossible, with the reason."""
    command: str = ""
    """Command that shows ``findings`` again, from the job's working directory; "" if there are none."""


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
    """Tasks of all processes, by total time, at most 1,000."""
    ops: OpTable | None = None
    """Op time; null if the session holds no op trace."""
    limits: Limits | None = None
    """Whether the ops of the step are as fast as they can be here; null if none were run alone after the job."""
    input_bound: InputBound | None = None
    """What the input could reach at best, and the edits that reach it; null if tf.data's model was not read."""
    input_tree: InputTree | None = None
    """The input pipeline as it ran, with the stage to mend; null if no input was seen."""
    line_heat: tuple[LineHeat, ...] = ()
    """Costliest lines, at most 100, from 0.5 %."""
    source_check: SourceCheck | None = None
    """Results of the checker; null if the session holds no sources, or no TensorFlow or Keras was used."""
    op_traces: tuple[OpTraceSummary, ...] = ()
    stack_files: tuple[StackFile, ...] = ()
    traced: TracedSteps | None = None
    """Traced steps; null if the session holds no op trace."""
    memory: tuple[MemoryMap, ...] = ()
    """Address spaces of the examined processes, at most 8; the one with the most memory first."""
    memory_room: MemoryRoom | None = None
    """Distance to the limit of memory, and the batch that would fit; null if no limit or no memory is known."""
    ledger: tuple[LedgerEntry, ...] = ()
    """Where the wall time went: the job's ledger, then one for each maker of steps if they are several threads or
    processes. Empty if nothing says when the job began and ended."""
    turns: Turns | None = None
    """The mean of the repetitions that hold many steps each (folds, trials, prompts); null if none are known."""
    system_calls: SystemCallsSummary | None = None
    """System calls, where somebody asked for a window in which they are counted; null without."""
    slow_steps: tuple[SlowStep, ...] = ()
    """Steps that are outliers, slowest first, at most 12, each compared with the median step."""
    links: tuple[NetworkLink, ...] = ()
    """Links between hosts that the job's TCP connections used, at most 50, those that carried most first."""
    clocks: tuple[HostClockOffset, ...] = ()
    """Clocks of the job's other hosts, if they were compared (``run --clock-hosts``)."""
    cluster: Cluster | None = None
    """The members of the job, if the session holds several: processes of it, or sessions joined by ``merge``."""
    unexplained_ratio: float = 0.0
    """Share of the job's wall time that no finding explains and that is not known to be as fast as it can be: of the
    parts of its ledger that are settled as unexplained."""
    series: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    """Small series for charts, times in seconds since session start (keys: docs/report-schema.md)."""
