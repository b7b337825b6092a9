"""The framework around the ops takes a noticeable part of the compiled steps, rather than the ops themselves.

## What it detects
Traced steps that spend a fifth of their time or more in the framework's runtime: the executor between ops, eager
dispatch, launches on a device.

## Why it matters
Scheduling an op costs one to some ten microseconds, whatever it does. A step of thousands of small ops is limited by
that, not by its work: a faster processor or fewer samples change little.

## Evidence
`runtime_ratio`: share of the traced steps in the framework's runtime; `ops_ratio`: share in ops on the host and in
kernels of a device.

## Known limits
Reported only where no specific finding explains the time. Tracing lengthens the time between ops; the cost of the
capture is stated with it. What fewer, larger steps would save is not measured.

## Remedy
Fewer, larger steps: larger batches, several steps in one call (`steps_per_execution`, a loop inside the tf.function);
or fewer, larger ops (`jit_compile=True`).

## References
TensorFlow guide on XLA; Keras documentation of Model.compile, steps_per_execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.general import spent_lines
from stepscope.detectors import general_loss, trace_evidence
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView

RUNTIME = ("runtime", "launch")
WORK = ("host-compute", "device-compute", "host-python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.20)
    """Of the traced steps, and more than the ops themselves: below it the ops are what the step does."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None:
        return
    ratio, work = trace.breakdown.ratio(*RUNTIME), trace.breakdown.ratio(*WORK)
    if ratio < params.min_ratio or ratio < work:
        return
    share = min(ratio, view.anatomy.ratio("call") + view.anatomy.ratio("framework"))
    place = spent_lines.of_steps(view)
    yield Seen(
        title=f"many small ops: the framework around the ops takes {format_ratio(ratio)} of the traced steps, the ops "
        f"themselves {format_ratio(work)}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        where=(place,) if place is not None else (),
        evidence=(
            trace_evidence.evidence(trace, "runtime_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "ops_ratio", work, "ratio"),
            Evidence(metric="call_ratio", value=view.anatomy.ratio("call"), unit="ratio", refs=("component:call",)),
        ),
        cost=cost_of(view, 0.0, high=share, basis="unknown"),
        remedies=(
            Remedy(
                id="fewer-larger-steps",
                text="fewer, larger steps: a larger batch, or several steps in one call (steps_per_execution in "
                "compile, a loop inside of the tf.function)",
            ),
            Remedy(id="fuse-ops", text="or fewer, larger ops: jit_compile=True, one op for the whole batch"),
        ),
        explanation="Scheduling an op costs the same whatever the op does.",
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
