"""An op runs on the host's CPUs in the middle of a step, and the device waits for it.

## What it detects
Ops on the host's executor threads that launch nothing on the device, while the device is idle with an empty queue; or a
Python function that the loop calls, if the profiler recorded Python (JAX).

## Why it matters
An op without a kernel for the device, or placed on the CPU, breaks the step in two: its inputs are copied to the host,
the device runs out of work, the host computes, the result is copied to the device.

## Evidence
From an op trace with a device's work: `host_op_ratio`, share of the steps in which the device was idle and ops ran on
the host; `op_ns_per_step`: time of the op with the most of it. `python_ratio`: the same for Python.

## Known limits
A tracer of Python lengthens every call. Ops of the input pipeline are not included. Ops that the device cannot run
(string ops) cannot move.

## Remedy
Use an op that has a kernel for the device (types: int32 and strings often have none), drop `with tf.device("cpu")`, or
move the op into the input pipeline. Call Python every N steps, or in another thread.

## References
TensorFlow guide, "Use a GPU": logging device placement; `tf.debugging.set_log_device_placement`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace import loop_python
from stepscope.derive.optrace.host.activity import Activity
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import op_places, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.host.event_labels import Op
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import I64


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""
    min_python_ratio: Ratio = Ratio(0.25)
    """The same for one Python function that the loop calls: a tracer lengthens each call of Python."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None or trace.device < 0:
        return
    ratio = trace.breakdown.ratio("host-compute")
    if ratio < params.min_ratio:
        yield from _of_python(view, trace, params)
        return
    (name, kind), longest, rows = _longest(trace)
    per_step = longest / max(1, len(trace.periods))
    yield Seen(
        title=f"{trace_evidence.short(name)} ({kind}) runs on the host's CPU in each step, {format_ns(per_step)}; "
        f"the device waits {format_ratio(ratio)} of the step for ops on the host",
        confidence=0.85,
        where=op_places.of_rows(view, trace, rows),
        evidence=(
            trace_evidence.evidence(trace, "host_op_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "op_ns_per_step", per_step, "ns"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio),
        remedies=(
            Remedy(
                id="op-on-device", text=f"use an op with a kernel for the device instead of {kind}, or another dtype"
            ),
            Remedy(id="op-in-pipeline", text="or do it in the input pipeline, where it runs while the device computes"),
        ),
        explanation="The device's queue was empty while the op ran.",
    )


def _longest(trace: OpView) -> tuple[Op, int, I64]:
    """The host op for which the device waits longest, for how long, and its events."""
    events, windows = trace.trace.events, trace.breakdown.when("host-compute")
    rows = trace.domain.rows(Activity.OP)
    inside = intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], windows)
    index = trace.labels.index[rows]
    sums = np.bincount(np.maximum(index, 0), weights=inside * (index >= 0), minlength=len(trace.labels.ops))
    best = int(sums.argmax())
    return trace.labels.ops[best], int(sums[best]), rows[index == best]


def _of_python(view: SessionView, trace: OpView, params: Params) -> Iterator[Seen]:
    """Python that the loop calls, if a tracer recorded it."""
    call, ratio = next(iter(loop_python.in_steps(trace).items()), (None, 0.0))
    if call is None or ratio < params.min_python_ratio:
        return
    yield Seen(
        title=f"{call} runs on the host in each step: the device is idle {format_ratio(ratio)} of the step while its "
        "Python does",
        confidence=0.85,
        cause="Python: interpreter overhead",
        pipeline_stage="output-processing",
        where=(view.place(call.file, call.line, function=call.function),),
        evidence=(
            trace_evidence.evidence(trace, "python_ratio", ratio, "ratio", params.min_python_ratio),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio),
        remedies=(
            Remedy(id="every-n-steps", text=f"call {call.function} every N steps, or once at the end"),
            Remedy(id="on-device", text="or do its work on the device, and read only the result"),
            Remedy(id="in-another-thread", text="or in another thread or process, while the device computes"),
        ),
        explanation="The device's queue was empty, the function is called by the loop itself, and nothing of the "
        "framework ran.",
    )


DETECTOR = Detector(
    code="KRN003",
    name="op-on-host-in-device-step",
    symptom="Processor: abnormal GPU utilization",
    cause="Hardware: hardware and code mismatch",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.DEVICE_TRACE}),
    params=Params(),
    detect=detect,
    of_launches=True,
)
