"""The input pipeline: how long steps wait for it, and which stage is slow.

tf.data keeps a live model of every iterator (TensorFlow >= 2.17): the gaps between two GetNext calls, and the self time
of every stage. Over the last m executions the input wait is the wall time from the first of their starts to the last
minus the m gaps; this is exact even if GetNext is an op inside a compiled step. If the loop pulls batches from Python,
the NEXT records give the wait and the model only names the stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.derive.input import model_reads, pipeline_python, stages, traced_input
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import evaluations, gaps
from stepscope.model.log.events import DatasetMade, IteratorMade, IteratorModel
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.derive.input.model_reads import Read
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.input.traced_input import TracedInput
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import Bool


class WaitWindow(Struct, frozen=True, kw_only=True):
    """Input wait inside a compiled step, over consecutive executions."""

    start_ns: int
    end_ns: int
    executions: int
    wait_ns: float
    gaps_ns: tuple[int, ...] = ()
    """Times between two batches, spent by the consumer."""


class Pipeline(Struct, frozen=True, kw_only=True):
    """Facts about the input of the steps."""

    windows: tuple[WaitWindow, ...] = ()
    stages: tuple[Stage, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    datasets: tuple[DatasetMade, ...] = ()
    """Every construction whose pipeline fed the steps, from the consumer to the source."""
    iterators: tuple[IteratorMade, ...] = ()
    iterators_made: int = 0
    """Iterators made by the process, whether or not they are known to feed the steps."""
    handover_ns: float = 0.0
    """Python time to take a batch that is ready, per step; this is not a wait for the pipeline."""
    pulled_gaps_ns: tuple[int, ...] = ()
    """Times between two batches that were pulled from Python, spent by the consumer."""
    batches_per_step: float = 1.0
    cpu_ns: float | None = None
    """CPU time of the whole process per batch, between reads of the model; None if unknown."""
    captures: tuple[str, ...] = ()
    """The captures ("capture:ID") that gave the wait and the stages if there was no model to read."""
    traced_steps: int = 0
    """Number of steps in those captures."""
    error: str = ""
    """Why tf.data's model could not be read: "no-op" (TensorFlow < 2.17), "no-model" (autotune off), other texts as
    they were raised; "" if it was read or not needed."""
    diagnostics: tuple[str, ...] = field(default=())

    @property
    def wait_ns_per_execution(self) -> float | None:
        """Mean input wait of one execution; None if the model does not say."""
        executions = sum(w.executions for w in self.windows)
        return sum(w.wait_ns for w in self.windows) / executions if executions else None

    def wait_error_ns(self) -> float:
        """Standard error of ``wait_ns_per_execution`` from the scatter between windows; 0 for fewer than three."""
        if len(self.windows) < 3:  # noqa: PLR2004 - no scatter to speak of
            return 0.0
        means = np.array([w.wait_ns / w.executions for w in self.windows])
        weights = np.array([w.executions for w in self.windows], float)
        mean = float(np.average(means, weights=weights))
        variance = float(np.average((means - mean) ** 2, weights=weights))
        return float(np.sqrt(variance / (len(means) - 1)))

    def disturbed_ns(self) -> float:
        """Excess of the mean gap over the undisturbed one (the 10th percentile), per execution.

        User Python in the pipeline makes the consumer's own Python wait for the interpreter lock: removing it saves
        this time in addition to the wait.
        """
        gaps = np.array([gap for w in self.windows for gap in w.gaps_ns] or self.pulled_gaps_ns)
        executions = sum(w.executions for w in self.windows) or len(gaps)
        if len(gaps) == 0:
            return 0.0
        usual = np.minimum(gaps, np.percentile(gaps, 90))  # rare events have other causes
        return float(usual.mean() - np.percentile(gaps, 10)) * len(gaps) / executions

    def why_unread(self, versions: Mapping[str, str]) -> str:
        """Why the input wait of compiled steps is unknown, in words; ``versions``: of frameworks."""
        if self.error == "no-op":
            found = versions.get("tensorflow", "")
            return f"{f'TensorFlow {found}'.rstrip()} does not expose tf.data's model (2.17 and later do)"
        if self.error == "no-model":
            return "autotune is off for this dataset, so tf.data keeps no model of it"
        if self.error:
            return f"tf.data's model could not be read: {self.error}"
        if self.iterators_made:
            return "the steps ended before tf.data's model was read"
        return "no iterator was seen feeding the step: it is created inside the step, or read elsewhere"

    @property
    def slowest(self) -> Stage | None:
        """The largest stage of the stretch that limits the pipeline."""
        return max(stages.limiting(self.stages), key=lambda s: s.latency_ns, default=None)


def build(steps: Steps, traces: Sequence[OpView] = ()) -> Pipeline:
    """The input of ``steps``; from op traces if tf.data's model could not be read."""
    worker = steps.worker
    errors = [m.error for m in worker.all(IteratorModel) if m.error]
    reads, broken = model_reads.read_all(worker)
    datasets = {d.id: d for d in worker.all(DatasetMade)}
    iterators = {i.id: i for i in worker.all(IteratorMade)}
    pulled = _pulled_iterators(steps)
    traced = traced_input.build(steps, traces, pulled) if not reads else None
    reads = [*reads, *(traced.reads if traced is not None else ())]
    used = (pulled | _read_iterators(steps, reads)) & (set(iterators) | {r.iterator for r in reads})
    reads = [r for r in reads if r.iterator in used]
    chain = stages.upstream([iterators[i].dataset for i in used if i in iterators], datasets)
    handover, gaps = _pulls(steps)
    windows = tuple(_windows(steps, [r for r in reads if r.iterator not in pulled]))
    if traced is not None:
        windows = tuple(_traced_windows(steps, traced)) if not pulled else ()
    return Pipeline(
        handover_ns=handover,
        pulled_gaps_ns=gaps,
        windows=windows,
        stages=stages.build(steps, reads, iterators, datasets),
        functions=pipeline_python.build(steps),
        datasets=tuple(chain),
        iterators=tuple(iterators[i] for i in sorted(used) if i in iterators),
        iterators_made=len(iterators),
        batches_per_step=_batches_per_step(steps, pulled, reads),
        cpu_ns=_cpu_ns(steps, reads),
        captures=traced.refs if traced is not None else (),
        traced_steps=len(traced.waits) if traced is not None else 0,
        error=errors[0] if errors and not reads else "",
        diagnostics=tuple(broken),
    )


MAX_HANDOVER_NS = 300_000
"""A ``next`` that finds its batch ready takes 0.03-0.05 ms alone and 0.15-0.3 ms next to a busy step (Python, dispatch,
wake-ups): TensorFlow 2.21, programs of bench/cases that do not wait."""


def _pulls(steps: Steps) -> tuple[float, tuple[int, ...]]:
    """Cost of taking ready batches, per steady step, and the gaps between two pulls of the step thread."""
    lo, hi = steps.windows
    if len(lo) == 0:
        return 0.0, ()
    records = steps.worker.records
    mine = (records.kind == Kind.NEXT) & (records.thread == steps.thread)
    mine &= (records.start_ns >= lo[0]) & (records.start_ns < hi[-1])
    if mine.sum() < 2:  # noqa: PLR2004 - no gap
        return 0.0, ()
    starts, durs = records.start_ns[mine], records.dur_ns[mine]
    floor = min(float(np.percentile(durs, 10)), MAX_HANDOVER_NS)
    unbroken = ~intervals.overlapping(gaps.periods(steps.worker.gaps), starts[:-1], starts[1:])
    between = np.maximum(starts[1:] - (starts + durs)[:-1], 0)[unbroken]
    return floor * len(durs) / steps.steady_count, tuple(int(g) for g in between)


def _pulled_iterators(steps: Steps) -> set[int]:
    """Iterators from which the step thread pulled in Python during the steady steps."""
    lo, hi = steps.windows
    if len(lo) == 0:
        return set()
    records = steps.worker.records
    pulled = (records.kind == Kind.NEXT) & (records.thread == steps.thread)
    pulled &= (records.start_ns >= lo[0]) & (records.start_ns <= hi[-1])
    return {int(i) for i in np.unique(records.arg[pulled])}


def _read_iterators(steps: Steps, reads: list[Read]) -> set[int]:
    """Iterators whose model was read during the steady steps: the agent reads those that calls consume."""
    lo, hi = steps.windows
    return {r.iterator for r in reads if len(lo) and lo[0] <= r.at <= hi[-1] + _GRACE_NS}


_GRACE_NS = 2_000_000_000
"""The read at the end of fit comes after the last step."""


def _windows(steps: Steps, reads: list[Read]) -> Iterator[WaitWindow]:
    """Non-overlapping windows of consecutive executions, one per read."""
    if steps.steady_count == 0 or steps.kind not in kinds_with(Trait.COMPILED):
        return
    starts = steps.starts
    broken = ~steps.steady | intervals.overlapping(evaluations.loops(steps), starts, steps.ends) | _paused(steps)
    """Steps in which the consumer also did something else, or was not observed."""
    reached: dict[int, int] = {}
    for read in reads:
        last = int(np.searchsorted(starts, read.at, side="right")) - 1
        between = read.data.gaps_us[-max(0, read.elements - 1) :] if read.elements > 1 else ()
        per = _per_execution(steps, read)
        known = len(between) // per if per <= len(between) else min(1, len(between))
        executions = min(known, last - reached.get(read.iterator, -1))
        first = last - executions
        if first < 0 or executions < 1:
            continue
        other = np.flatnonzero(broken[first:last])
        first += int(other[-1]) + 1 if len(other) else 0
        steady = np.flatnonzero(steps.steady[first:last])
        if len(steady) == 0:
            continue
        first += int(steady[0])
        executions = last - first
        reached[read.iterator] = last
        inner = min(per, len(between)) - 1
        used = between[max(0, len(between) - inner - executions * per) : len(between) - inner]
        wall = int(starts[last] - starts[first])
        worked = 1000.0 * sum(used) * executions * per / len(used)
        yield WaitWindow(
            start_ns=int(starts[first]),
            end_ns=int(starts[last]),
            executions=executions,
            wait_ns=min(max(0.0, wall - worked), wall),
            gaps_ns=tuple(1000 * gap for gap in used),
        )


def _paused(steps: Steps) -> Bool:
    """Steps whose gap tf.data does not report: the pause would count as a wait, and gaps before it for other steps.

    Where most of such a step is its call, the call may wait for input as long.
    """
    whole = steps.ends - steps.starts
    paused: Bool = (whole >= LONGEST_GAP_NS) & (steps.ends - steps.call_ends >= PAUSED * whole)
    return paused


LONGEST_GAP_NS, PAUSED = 10_000_000_000, 0.25
"""Gaps as long or longer are dropped: TensorFlow, core/framework/model.cc, RecordIteratorGapTime; and the part of such
a step outside of its call from which the step paused."""


def _traced_windows(steps: Steps, traced: TracedInput) -> Iterator[WaitWindow]:
    """The traced steps, each scaled to a usual call, because tracing makes steps slower."""
    if steps.steady_count == 0 or steps.kind not in kinds_with(Trait.COMPILED):
        return
    usual = float((steps.call_ends - steps.starts)[steps.steady].mean())
    for wait in traced.waits:
        yield WaitWindow(start_ns=wait.start_ns, end_ns=wait.end_ns, executions=1, wait_ns=wait.ratio * usual)


def _batches_per_step(steps: Steps, pulled: set[int], reads: list[Read]) -> float:
    if pulled:
        return max(1.0, len(_pulls(steps)[1]) / max(1, steps.steady_count))
    return float(max((_per_execution(steps, read) for read in reads[-1:]), default=1))


def _cpu_ns(steps: Steps, reads: list[Read]) -> float | None:
    """CPU time per batch: between the first and the last read of each iterator within the steady steps."""
    lo, hi = steps.windows
    cpu = batches = 0
    for iterator in {r.iterator for r in reads}:
        series = [r for r in reads if r.iterator == iterator and r.cpu_ns and len(lo) and lo[0] <= r.at <= hi[-1]]
        if len(series) > 1:
            cpu += series[-1].cpu_ns - series[0].cpu_ns
            batches += series[-1].elements - series[0].elements
    return cpu / batches if batches > 0 else None


def _per_execution(steps: Steps, read: Read) -> int:
    """Batches taken by one execution: Keras' steps_per_execution, or the iterations of a loop inside a function."""
    if steps.kind == Kind.EXECUTION:
        records = steps.worker.records
        mine = (records.kind == steps.kind) & (records.thread == steps.thread)
        return max(1, int(np.median(records.arg[mine])))
    return max(1, round(read.elements / read.executions)) if read.executions > 0 else 1
