"""The framework around the ops takes a noticeable part of the compiled steps, rather than the ops themselves.

## What it detects
Traced steps that spend a fifth of their time or more in the framework's runtime: the executor between ops, eager
dispatch, launches on a device.

## Why it matters
Scheduling an op costs one to some ten microseconds, whatever it does. A step of thousands of small ops is limited by
that, not by its work: a faster processor or fewer samples change little.

## Evidence
`runtime_ratio`: share of the traced steps in the framework's runtime; `ops_ratio`: share in ops on the host and in
kernels of a device; `ops_per_step`, `around_op_ns`: what that is for each op. Where it is more than scheduling takes
(0.1 ms), that is said, and not that the ops are small: the runtime also allocates and frees memory, and waits. Where
the graph's nodes show that one Python loop made most of it, `turns` and `loop_ratio` as of GRF002: such a step pays for
each op of each iteration. Unless the iterations need the results of earlier ones, they can be computed at once, and the
finding is above information.

## Known limits
Reported only where no specific finding explains the time, and not where the thread of the steps waits for the
interpreter lock meanwhile. Tracing lengthens the time between ops; the cost of the
capture is stated with it. What fewer, larger steps would save is not measured.

## Remedy
Where a loop made the ops: compute its iterations at once, on tensors with one more axis. Else fewer, larger steps:
larger batches, several steps in one call (`steps_per_execution`, a loop inside the tf.function); or fewer, larger ops
(`jit_compile=True`).

## References
TensorFlow guide on XLA; Keras documentation of Model.compile, steps_per_execution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general import spent_lines
from stepscope.causes.host import gil_contention, unrolled_python_loop
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work
from stepscope.derive.optrace.host.activity import Activity
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import general_loss, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.unrolled_python_loop import GraphMakingLoop
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place

RUNTIME = ("runtime", "launch")
WORK = ("host-compute", "device-compute", "host-python")
SCHEDULING_NS = 100_000
"""Most that scheduling one op takes on a slow and busy machine: one to some ten microseconds elsewhere."""
SURE = 0.5
"""Share of a loop's part that larger ops save at least: a few of them stay."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.20)
    """Of the traced steps, and more than the ops themselves: below it the ops are what the step does."""
    min_loop_ratio: Ratio = Ratio(0.30)
    """Of the graph's nodes that one loop made."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None:
        return
    ratio, work = trace.breakdown.ratio(*RUNTIME), trace.breakdown.ratio(*WORK)
    if ratio < max(params.min_ratio, work):
        return
    lock = view.get(gil_contention.known)
    if lock is not None and ratio - lock.ratio < max(params.min_ratio, work):
        return
    share = min(ratio, view.anatomy.ratio("call") + view.anatomy.ratio("framework"))
    number = _ops_per_step(trace)
    each = ratio * trace.periods.mean_ns / max(1.0, number)
    text = f"the framework around many small ops takes {format_ratio(ratio)} of the traced steps, the ops themselves "
    evidence = (
        trace_evidence.evidence(trace, "runtime_ratio", ratio, "ratio", params.min_ratio),
        trace_evidence.evidence(trace, "ops_ratio", work, "ratio"),
        Evidence(metric="ops_per_step", value=number, unit="ops"),
        Evidence(metric="around_op_ns", value=each, unit="ns"),
        Evidence(metric="call_ratio", value=view.anatomy.ratio("call"), unit="ratio", refs=("component:call",)),
    )
    loop = view.get(unrolled_python_loop.worst)
    if loop is not None and loop.in_turn is False and loop.ratio >= params.min_loop_ratio:
        yield _of_loop(view, loop, share, text + format_ratio(work), evidence)
        return
    place = spent_lines.of_steps(view)
    if each > SCHEDULING_NS:
        yield _beyond_scheduling(view, place, ratio, share, evidence)
        return
    yield Seen(
        title=f"{text}{format_ratio(work)}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        where=(place,) if place is not None else (),
        evidence=evidence,
        cost=cost_of(view, 0.0, high=share, basis="unknown"),
        remedies=(
            Remedy(
                id="fewer-larger-steps",
                text="make fewer, larger steps: a larger batch, or several steps in one call (steps_per_execution in "
                "compile, a loop inside of the tf.function)",
            ),
            Remedy(id="fuse-ops", text="or use fewer, larger ops: jit_compile=True, one op for the whole batch"),
        ),
        explanation="Scheduling an op costs the same whatever the op does.",
    )


def _ops_per_step(trace: OpView) -> float:
    """Number of ops on the host and of kernels of a device in the mean traced step."""
    rows = trace.domain.rows(Activity.OP)
    if trace.device >= 0:
        rows = np.concatenate([rows, device_work.rows(trace.trace, trace.device)])
    at = trace.trace.events.start_ns[rows]
    return float(intervals.overlapping(trace.periods.windows, at, at + 1).sum()) / max(1, len(trace.periods))


def _beyond_scheduling(
    view: StepsView, place: Place | None, ratio: float, share: float, evidence: tuple[Evidence, ...]
) -> Seen:
    """More time around each op than it takes to schedule it."""
    number, each = (one.value for one in evidence if one.metric in {"ops_per_step", "around_op_ns"})
    return Seen(
        title=f"the framework takes {format_ratio(ratio)} of the traced steps around its ops, "
        f"{format_ns(int(each))} for each of {number:,.0f}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        where=(place,) if place is not None else (),
        evidence=evidence,
        cost=cost_of(view, 0.0, high=share, basis="unknown"),
        remedies=(
            Remedy(
                id="look-at-native-stacks",
                text="see what it does there, such as allocating and freeing memory: stepscope trace JOB --kind native",
            ),
        ),
        explanation="Scheduling an op takes some microseconds: something else takes time between the ops, or the "
        "tracing itself slows them.",
    )


def _of_loop(view: StepsView, loop: GraphMakingLoop, share: float, text: str, evidence: tuple[Evidence, ...]) -> Seen:
    file, function, line, end_line = loop.place
    cost = loop.ratio * share
    return Seen(
        title=f"the Python loop in {function} made the same ops {loop.turns:,} times: {text}",
        confidence=general_loss.CONFIDENCE,
        where=(view.place(file, line, end_line, function),),
        evidence=(
            *evidence,
            Evidence(metric="loop_ratio", value=loop.ratio, unit="ratio"),
            Evidence(metric="turns", value=loop.turns, unit="turns"),
        ),
        cost=cost_of(view, cost, low=SURE * cost, high=view.anatomy.ratio("call"), basis="modelled"),
        remedies=(
            Remedy(
                id="vectorise",
                text="compute the iterations at once, vectorised: on tensors with one more axis (broadcasting, "
                "tf.vectorized_map); no iteration needs the result of an earlier one",
            ),
            Remedy(id="fuse-ops", text="or let XLA fuse the ops: jit_compile=True"),
        ),
        explanation="The loop is Python: each iteration added its own ops. Scheduling one costs the same whatever it "
        "does.",
    )


DETECTOR = Detector(
    code="GEN002",
    name="time-in-op-scheduling",
    cause="API: not using efficient API",
    introduced_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
)
