"""The device waits for the host to launch kernels.

## What it detects
A device that is idle with an empty queue while the host is busy launching ops: driver calls, the host's side of device
ops, executor and eager dispatch.

## Why it matters
Launching an op costs the host 5 to 20 us whatever the op does. If kernels are shorter than that, the device finishes
each before the next arrives, and a faster device gains nothing.

## Evidence
From an op trace with a device's work: `launch_idle_ratio`, share of the steps in which the device was idle, its queue
empty, and the host launching; `kernels_per_step`, `kernel_ns`: mean duration; `launch_ns`: mean duration of a launch
call.

## Known limits
Recording slows each launch; the capture's stated slowdown says by how much. A remedy saves at most this share.

## Remedy
Give the device more work per launch: a larger batch, `jit_compile=True` (fusion), a `tf.function` around eager code,
`steps_per_execution` in Keras.

## References
NVIDIA Nsight Systems, "GPU starvation"; TensorFlow: optimize GPU performance with the profiler, kernel launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.detectors import op_places, trace_evidence
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.report.finding import Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the traced steps. xprof calls kernel launch high from 15 %; but recording lengthens each call, so a smaller
    share may come from the trace itself: a ResNet-50 that keeps its V100 busy shows 21 % (kineto's sample)."""


LAUNCHING = ("launch", "runtime")
_FUSED = {"tensorflow": "jit_compile=True", "jax": "more of the step in one jax.jit", "torch": "torch.compile"}
_FEWER = {
    "tensorflow": "run several steps in one call: steps_per_execution, or a loop in tf.function",
    "jax": "run several steps in one call: jax.lax.scan over batches",
    "torch": 'launch the whole step at once: CUDA graphs, torch.compile(mode="reduce-overhead")',
}


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    kernels = trace.kernels if trace is not None else None
    if trace is None or kernels is None or trace.launches is None:
        return
    ratio = trace.breakdown.ratio(*LAUNCHING)
    if ratio < params.min_ratio:
        return
    launches = trace.launches
    called = (launches.returned_ns - launches.called_ns)[launches.known]
    per_step = len(kernels.row) / max(1, len(trace.periods))
    mean = float(kernels.dur_ns.mean())
    yield Seen(
        title=f"kernel launch: the device waits {format_ratio(ratio)} of the step for the host to launch work; "
        f"{per_step:,.0f} kernels a step take {format_ns(mean)} each",
        confidence=0.85,
        where=op_places.of_rows(view, trace, kernels.row),
        evidence=(
            trace_evidence.evidence(trace, "launch_idle_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "kernels_per_step", per_step, "kernels"),
            trace_evidence.evidence(trace, "kernel_ns", mean, "ns"),
            trace_evidence.evidence(trace, "launch_ns", float(called.mean()) if len(called) else 0.0, "ns"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio, low=ratio / 2, basis="modelled"),
        remedies=(
            Remedy(
                id="more-work-per-launch",
                text=f"give each launch more work: a larger batch, or {_FUSED[trace.framework]}",
            ),
            Remedy(id="fewer-calls", text=_FEWER[trace.framework]),
        ),
        explanation="The device had finished all queued work, and the host was launching more.",
    )


DETECTOR = Detector(
    code="KRN001",
    name="kernel-launch-bound",
    symptom="Processor: abnormal GPU utilization",
    cause="API: not using efficient API",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.DEVICE_TRACE}),
    params=Params(),
    detect=detect,
)
