"""The summary of an op trace: public API, schema ``stepscope.report/1`` (additions only)."""

from __future__ import annotations

import msgspec

from stepscope.tables.structs import Struct


class PlaneSummary(Struct, frozen=True, kw_only=True):
    """An observed object of an op trace."""

    name: str
    kind: str
    """Kind: host | gpu | tpu | device | other"""
    events: int
    """Number of events; 0: it was not captured, which does not mean that it was idle."""


class OpTraceSteps(Struct, frozen=True, kw_only=True):
    """Steps as an op trace shows them, including the first and the last."""

    how: str
    """Method: marker | device line | program runs | function calls | runs of the session | run"""
    name: str
    count: int
    median_ns: int
    min_ns: int
    max_ns: int


class OpTraceSummary(Struct, frozen=True, kw_only=True):
    """An op trace of the session: captured, or imported."""

    name: str
    file: str
    """File of an imported trace."""
    format: str
    """Format: xplane | trace-event | kineto | run-metadata"""
    events: int
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that the reader deliberately omitted, by reason."""
    planes: tuple[PlaneSummary, ...] = ()
    steps: tuple[OpTraceSteps, ...] = ()
    """Every way in which it shows steps, the most informative first."""


class TracedPart(Struct, frozen=True, kw_only=True):
    """A part of the traced steps; parts add up to them."""

    part: str
    """Name of the part as in docs/op-traces.md."""
    ratio: float
    """Share of the steps' time."""
    ns_per_step: int


class TracedStage(Struct, frozen=True, kw_only=True):
    """A stage of the tf.data pipeline that fed the traced steps."""

    name: str
    """Name after tf.data's own rewriting: MapAndBatch, ParallelMapV2 ..."""
    depth: int
    """Number of stages between it and the step: 0 for the one that the step calls."""
    datasets: str = ""
    """Ops of the graph that it stands for, if the trace says."""
    calls: int
    self_ns_per_batch: int
    """Own work, summed over its threads."""
    parallelism: int = 1
    """Number of calls of its function that may run at a time."""
    buffered: float | None = None
    """Mean number of elements ready when it was called; null if it has no buffer."""
    blocking: bool = False
    """Flag: it needs the most time per batch."""
    ops: tuple[str, ...] = ()
    """Types of the ops that take most of its function's time, at most three."""


class TracedGap(Struct, frozen=True, kw_only=True):
    """An idle time of the device."""

    at_ns: int
    """Start since session start."""
    dur_ns: int
    part: str
    """Activity of the host for most of the time."""


class TracedIdle(Struct, frozen=True, kw_only=True):
    """Idle times of the device within the steps. Ratios are shares of the steps' time."""

    device: str
    ratio: float
    host_ratio: float
    """Share with an empty queue: the device waits for the host."""
    count: int
    """Number of gaps of at least a microsecond."""
    parts: tuple[TracedPart, ...] = ()
    """Activity of the host in the meantime, largest part first."""
    calls: tuple[TracedCall, ...] = ()
    """What the loop called meanwhile, if the profiler recorded Python; largest first, at most 3."""
    gaps: tuple[TracedGap, ...] = ()
    """Longest gaps, at most 10."""


class TracedCall(Struct, frozen=True, kw_only=True):
    """A function that the loop calls. ``ratio``: share of the device's idle time in which it ran."""

    function: str
    file: str
    """Last part of its path."""
    line: int
    ratio: float


class TracedGain(Struct, frozen=True, kw_only=True):
    """Gain of the steps if an op on the critical path took half of its time. Ratios of the steps' time."""

    name: str
    """Name of the op; "Python" for code between the framework's calls."""
    type: str = ""
    path_ratio: float
    """Share of the critical path."""
    low: float
    high: float


class TracedCommunication(Struct, frozen=True, kw_only=True):
    """Communication in the mean traced step: collectives, transfers to and from other tasks, and waits for them."""

    exposed_ns: int
    """While nothing computes for the step: what the step would be shorter without it, at most."""
    hidden_ns: int
    """While ops, or kernels of the device, compute."""


class TracedTransfer(Struct, frozen=True, kw_only=True):
    """What the device received in each traced step: the mean. Times since the step's begin on the device."""

    name: str
    """Name of the op that sent it, which for a variable is the one that reads it."""
    sender: str
    """Task that sent it: "ps 0"."""
    size_bytes: int
    needed_ns: int
    """When the op that needs it had its other inputs."""
    came_ns: int
    waited_ns: int
    """Time from needed to came; 0 if it came before."""
    early: int = 0
    """Number of traced steps in which it came before another of the same link that was needed more urgently."""


class TransferOrder(Struct, frozen=True, kw_only=True):
    """The order in which parameters came from other tasks, and what another would gain."""

    device: str
    """Device that received them."""
    steps: int
    """Number of traced steps that were examined."""
    early: float
    """Mean number of transfers that came before a more urgent one of the same link."""
    still_ns: int
    """Time of the mean step in which no op ran while one lacked only what was on its way."""
    gain_ns: int
    """By how much the median step would end earlier at most, had the most urgent always come first."""
    gain_low_ns: int
    """The same in the step in which it is least."""
    gain_high_ns: int
    transfers: tuple[TracedTransfer, ...] = ()
    """The most urgent first, at most 50."""
    more: int = 0
    """Number of further ones, those of less than a hundredth of the bytes included."""


class StackFile(Struct, frozen=True, kw_only=True):
    """Sampled stacks of one event in an imported file."""

    event: str
    rows: int
    total: float
    """Sum of the rows' weights."""
    unit: str = ""
    """Unit of the sum: "ns", "bytes", "samples", or the counted thing; "" unknown."""


class OtherTrace(Struct, frozen=True, kw_only=True):
    """The steps of an imported file that the report is not about."""

    file: str
    count: int
    mean_ns: int
    parts: tuple[TracedPart, ...] = ()
    """Parts, largest first."""
    analysed: bool = False
    """Flag: the report has its findings too, as those of another rank of the job."""


class TracedSteps(Struct, frozen=True, kw_only=True):
    """The steps of the op trace that shows the most of them, and their parts."""

    trace: str
    """Name of the trace in the session."""
    file: str = ""
    """Name of its file, if several were imported."""
    capture: str = ""
    """Reference "capture:ID", as in evidence; empty for an imported trace."""
    count: int
    """Number of whole steps, each to the start of the next; 0: none is visible, and everything is about the whole
    trace."""
    name: str = ""
    """Name of the marker, the program or the function that shows them."""
    mean_ns: int
    """Mean time of a step, or time of the trace."""
    parts: tuple[TracedPart, ...] = ()
    """Parts, largest first."""
    batches: int = 0
    """Number of batches that the steps took from the pipeline."""
    pipeline: tuple[TracedStage, ...] = ()
    """Stages from the consumer to the sources; empty if no tf.data pipeline was seen."""
    idle: TracedIdle | None = None
    """Idle times; null if no device's work was captured."""
    gains: tuple[TracedGain, ...] = ()
    """Gains, largest first, at most 10."""
    communication: TracedCommunication | None = None
    """Communication in the mean step; null: there is none."""
    transfers: TransferOrder | None = None
    """The order of what other tasks sent; null: nothing came, or the trace does not name the inputs of ops."""
    others: tuple[OtherTrace, ...] = ()
    """The other imported files with steps, at most 8, by name."""
