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
call; `values_read_per_step`, copies of up to 64 bytes from the device, and `read_idle_ratio`, the share of the steps in
which the device is idle right after one.

## Known limits
Recording slows each launch; the capture's stated slowdown says by how much. A remedy saves at most this share.

## Remedy
Give the device more work per launch: a larger batch, `jit_compile=True` (fusion), a `tf.function` around eager code,
`steps_per_execution` in Keras.

## References
NVIDIA Nsight Systems, "GPU starvation"; TensorFlow: optimize GPU performance with the profiler, kernel launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.optrace.steps import readbacks
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import op_places, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.steps.readbacks import Readbacks
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Evidence


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the traced steps. xprof calls kernel launch high from 15 %; but recording lengthens each call, so a smaller
    share may come from the trace itself: a ResNet-50 that keeps its V100 busy shows 21 % (kineto's sample)."""
    min_read_ratio: Ratio = Ratio(0.3)
    """Of that share: idle right after values that the host reads, from which reading them is the cause."""


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
    read = readbacks.build(trace.trace, trace.device, trace.periods)
    yield Seen(
        title=f"kernel launch: the device waits {format_ratio(ratio)} of the step for the host to launch work; "
        f"kernels take {format_ns(mean)} each, {per_step:,.0f} a step",
        confidence=0.85,
        where=op_places.of_rows(view, trace, kernels.row),
        evidence=(
            trace_evidence.evidence(trace, "launch_idle_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "kernels_per_step", per_step, "kernels"),
            trace_evidence.evidence(trace, "kernel_ns", mean, "ns"),
            trace_evidence.evidence(trace, "launch_ns", float(called.mean()) if len(called) else 0.0, "ns"),
            *_read_evidence(trace, read),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio, low=ratio / 2, basis="modelled"),
        remedies=(
            *_reads(trace, read, ratio, params),
            Remedy(
                id="more-work-per-launch",
                text=f"give each launch more work: a larger batch, or {_FUSED[trace.framework]}",
            ),
            Remedy(id="fewer-calls", text=_FEWER[trace.framework]),
        ),
        explanation="The device had finished all queued work, and the host was launching more.",
    )


def _read_evidence(trace: OpView, read: Readbacks) -> Iterator[Evidence]:
    if read.per_step:
        yield trace_evidence.evidence(trace, "values_read_per_step", read.per_step, "values")
        yield trace_evidence.evidence(trace, "read_idle_ratio", read.idle_ratio, "ratio")


def _reads(trace: OpView, read: Readbacks, ratio: float, params: Params) -> Iterator[Remedy]:
    """The first remedy, if the queue is empty because the host reads values."""
    if read.idle_ratio < params.min_read_ratio * ratio:
        return
    text = "a value is read by the host in each step, which empties the queue: read it every N steps"
    if read.per_step >= MANY:
        text = (
            f"{read.per_step:,.0f} values a step are read by the host, and each empties the queue: keep them on the "
            f"device, and read them together ({_READ[trace.framework]}) or every N steps"
        )
    yield Remedy(id="read-values-together", text=text)


MANY = 1.5
_READ = {"tensorflow": "tf.stack, then .numpy()", "jax": "jax.device_get of a tree", "torch": "torch.stack, .tolist()"}


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
    of_launches=True,
)
