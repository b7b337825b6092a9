"""The GPU is busy all the time: only its ops can be improved.

## What it detects
During the steady steps a kernel runs on every GPU nearly all the time.

## Why it matters
Nothing on the host delays the device: faster input, fewer callbacks or more threads gain nothing. What remains is the
work on the device: mixed precision, fused ops, XLA, layouts, a smaller model, or more devices.

## Evidence
`gpu_busy_ratio`: mean of NVML's utilisation over the samples of the steady steps; `least_busy_ratio`: its 5th
percentile.

## Known limits
NVML counts time in which at least one kernel runs: a device that runs one small kernel after another is "busy" and may
still reach a tenth of its capacity. An op trace shows it. On an H100 it was
reported for the programs that kept it busy, and for no other (docs/benchmarks/gpu.md).

## Remedy
Record an op trace of some steps and improve the ops that take most.

## References
NVML API reference, nvmlUtilization_t; training-pipeline analysis (Rand 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
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

    min_busy_ratio: Ratio = Ratio(0.95)
    """Mean over the steady steps of the least busy device."""
    min_least_ratio: Ratio = Ratio(0.85)
    """5th percentile of its samples: it never waits for a second."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding, as information: it costs nothing."""
    busy = min(gpu.busy_ratio for gpu in view.get(gpu.build))
    least = min(float(np.percentile(gpu.busy, 5)) for gpu in view.get(gpu.build))
    if busy < params.min_busy_ratio or least < params.min_least_ratio:
        return
    count = len(view.get(gpu.build))
    yield Seen(
        title=f"{'the GPU is' if count == 1 else f'all {count} GPUs are'} busy {format_ratio(busy)} of the time: only "
        f"{'its' if count == 1 else 'their'} ops can be improved",
        severity="info",
        confidence=0.9,
        where=op_places.of_steps(view),
        evidence=(
            Evidence(metric="gpu_busy_ratio", value=busy, unit="ratio", threshold=params.min_busy_ratio),
            Evidence(metric="least_busy_ratio", value=least, unit="ratio", threshold=params.min_least_ratio),
        ),
        cost=cost_of(view, 0.0),
        remedies=(Remedy(id="improve-ops", text="record an op trace; try mixed precision and a compiler's fused ops"),),
        explanation="The device never waits for the host. Advice about input, callbacks or threads does not apply.",
    )


DETECTOR = Detector(
    code="GPU002",
    name="device-full",
    symptom="unknown",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.GPU}),
    params=Params(),
    detect=detect,
    applies=no_gpu,
)
