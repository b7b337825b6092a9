"""What the report says of an op trace: public API, schema ``stepscope.report/1`` (additions only)."""

from __future__ import annotations

import msgspec

from stepscope.model.structs import Struct


class PlaneSummary(Struct, frozen=True, kw_only=True):
    """Something that an op trace observed."""

    name: str
    kind: str
    """host | gpu | tpu | device | other"""
    events: int
    """0: it was not captured, which does not say that it was idle."""


class OpTraceSteps(Struct, frozen=True, kw_only=True):
    """Steps as an op trace shows them, the first and the last included."""

    how: str
    """marker | device line | program runs | function calls | run"""
    name: str
    count: int
    median_ns: int
    min_ns: int
    max_ns: int


class OpTraceSummary(Struct, frozen=True, kw_only=True):
    """An op trace of the session: captured, or imported."""

    name: str
    file: str
    """Of an imported one."""
    format: str
    """xplane | trace-event | kineto | run-metadata"""
    events: int
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that the reader left out by choice, by reason."""
    planes: tuple[PlaneSummary, ...] = ()
    steps: tuple[OpTraceSteps, ...] = ()
    """Every way in which it shows steps, the most telling first."""


class TracedPart(Struct, frozen=True, kw_only=True):
    """A part of the traced steps; parts add up to them."""

    part: str
    """As docs/op-traces.md names it."""
    ratio: float
    """Of the steps' time."""
    ns_per_step: int


class TracedStage(Struct, frozen=True, kw_only=True):
    """A stage of the tf.data pipeline that fed the traced steps."""

    name: str
    """After tf.data's own rewriting: MapAndBatch, ParallelMapV2 ..."""
    depth: int
    """Stages between it and the step: 0 for the one that the step calls."""
    datasets: str = ""
    """Ops of the graph that it stands for, where the trace says."""
    calls: int
    self_ns_per_batch: int
    """Its own work, summed over its threads."""
    parallelism: int = 1
    """How many calls of its function may run at a time."""
    buffered: float | None = None
    """Elements that lay ready when it was called, in the mean; null where it has no buffer."""
    blocking: bool = False
    """It needs the most time for a batch."""
    ops: tuple[str, ...] = ()
    """Types of the ops that take most of its function's time, at most three."""


class TracedGap(Struct, frozen=True, kw_only=True):
    """An idle time of the device."""

    at_ns: int
    """Since session start."""
    dur_ns: int
    part: str
    """What the host did most of the time."""


class TracedIdle(Struct, frozen=True, kw_only=True):
    """Idle times of the device that the steps are made of. Ratios are shares of the steps' time."""

    device: str
    ratio: float
    host_ratio: float
    """With nothing in its queue: the device waits for the host."""
    count: int
    """Gaps of a microsecond and more."""
    parts: tuple[TracedPart, ...] = ()
    """What the host did meanwhile, the largest first."""
    gaps: tuple[TracedGap, ...] = ()
    """The longest, at most 10."""


class TracedGain(Struct, frozen=True, kw_only=True):
    """What the steps would save if an op on the critical path took half of its time. Ratios of the steps' time."""

    name: str
    """Of the op; "Python" for what runs between the framework's calls."""
    type: str = ""
    path_ratio: float
    """Its share of the critical path."""
    low: float
    high: float


class TracedSteps(Struct, frozen=True, kw_only=True):
    """The steps of the op trace that shows the most of them: where their time goes."""

    trace: str
    """Its name in the session."""
    capture: str = ""
    """"capture:ID", as evidence refers to it; empty for an imported one."""
    count: int
    """Whole steps, each to the start of the next; 0: none is seen, and all is of the whole trace."""
    name: str = ""
    """Of the marker, the program or the function that shows them."""
    mean_ns: int
    """Of a step, or of the trace."""
    parts: tuple[TracedPart, ...] = ()
    """The largest first."""
    batches: int = 0
    """That the steps took from the pipeline."""
    pipeline: tuple[TracedStage, ...] = ()
    """From the consumer to the sources; empty where no tf.data pipeline was seen."""
    idle: TracedIdle | None = None
    """Null where no device's work was captured."""
    gains: tuple[TracedGain, ...] = ()
    """The most first, at most 10."""
