"""There is a GPU, and the job does not use it.

## What it detects
A host with an NVIDIA GPU on which the job makes steps, while no kernel runs on the device during the whole steady part
and the job has reserved none of its memory.

## Why it matters
TensorFlow falls back to the CPU without an error if its CUDA libraries do not fit, if a CPU-only package is installed,
or if `CUDA_VISIBLE_DEVICES` hides the devices. The job runs, only many times slower.

## Evidence
`gpu_busy_ratio`: mean of NVML's utilisation in the steady steps; `reserved_bytes`: device memory in use by any process;
`compute_ratio`: share of the step that is computing, which is what a device could take over.

## Known limits
How much faster the device would be is not measured: the cost is unknown, at most the share that is computing, and the
report asks instead of judging. Small models can be faster on the CPU, and a job may leave the device unused on purpose.
In containers NVML may hide which process uses a device; any memory in use there then clears the finding. Tested with
replayed readings only.

## Remedy
`stepscope doctor` says whether this TensorFlow can use the device, and why not. Install `tensorflow[and-cuda]`; check
CUDA_VISIBLE_DEVICES and TensorFlow's warnings at import.

## References
TensorFlow: Install with pip, Use a GPU. FSE'22 study, "Processor: not using GPU".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import gpu
from stepscope.causes.system.gpu import no_gpu
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import op_places
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    max_busy_ratio: Ratio = Ratio(0.01)
    """Mean over the steady steps, of the busiest device."""
    used_bytes: int = 1_000_000_000
    """A job that reserves this much uses the GPU. Drivers and display servers hold less; TensorFlow reserves nearly
    all."""
    min_compute_ratio: Ratio = Ratio(0.03)
    """Of the step: a device cannot save more. Less is information (the least that a report calls low)."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding, a question: what a device would save is not measured."""
    gpus = view.get(gpu.build)
    busy = max(g.busy_ratio for g in gpus)
    reserved = max(g.reserved_bytes if g.job_reserved_bytes <= 0 else g.job_reserved_bytes for g in gpus)
    anatomy = view.anatomy
    if busy > params.max_busy_ratio or reserved >= params.used_bytes:
        return
    compute = anatomy.ratio("call")
    yield Seen(
        title=f"the job does not use the GPU: {format_ratio(compute)} of the step is computed on the CPU",
        severity="ask" if compute >= params.min_compute_ratio else "info",
        confidence=0.8,
        where=op_places.of_steps(view),
        evidence=(
            Evidence(metric="gpu_busy_ratio", value=busy, unit="ratio", threshold=params.max_busy_ratio),
            Evidence(metric="reserved_bytes", value=reserved, unit="bytes", threshold=params.used_bytes),
            Evidence(metric="compute_ratio", value=compute, unit="ratio", threshold=params.min_compute_ratio),
        ),
        cost=cost_of(view, 0.0, high=compute, basis="unknown"),
        remedies=(
            Remedy(
                id="use-gpu",
                text="if it should use it: install tensorflow[and-cuda], check CUDA_VISIBLE_DEVICES and tf.device",
                what_if="stepscope doctor",
            ),
        ),
        explanation="No kernel ran on the device during the steady steps, and the job holds none of its memory.",
    )


DETECTOR = Detector(
    code="GPU003",
    name="idle-device",
    symptom="Processor: not using GPU",
    cause="Hardware: improper configuration",
    introduced_stage="environment setting",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.GPU}),
    params=Params(),
    detect=detect,
    applies=no_gpu,
)
