"""The GPU starts to work long after the job has started.

## What it detects
The time from the start of the process that makes the steps to the first second in which its GPU is busy, if it is a
large part of the run.

## Why it matters
Importing, reading data into memory, building and tracing the model cost money on an instance that is paid for its GPU.
Short jobs, hyper parameter searches and restarts pay it again each time.

## Evidence
`start_ratio`: time from the start of the process to the GPU's first busy second, as a share of the time from the start
of the process to its last step; `start_s`: the time itself; `first_step_s`: when the first step began, which separates
loading before it from waiting in it.

## Known limits
It is paid once: a longer run makes its share smaller, so the cost is that of this run. Samples come once a second. The
detectors of slow initialisation report what the time was spent on. Tested with replayed readings only.

## Remedy
Load data while the model is built, or read it in a pipeline instead of at the start; prepare data offline; keep a
compile cache.

## References
Training-pipeline analysis (Rand 2020), late start of the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import gpu
from stepscope.causes.system.gpu import no_gpu
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_start_s: float = 20.0
    """Importing TensorFlow and starting CUDA takes ten seconds and more on a cold machine."""
    min_start_ratio: Ratio = Ratio(0.1)
    """Of the time from the process's start to its last step."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    steps = view.steps
    start = steps.worker.info.started_ns
    used = [gpu.first_used_ns for gpu in view.get(gpu.build) if gpu.first_used_ns >= 0]
    end = int(steps.windows[1][-1])
    if not used or end <= start:
        return
    late = min(used) - start
    ratio = late / (end - start)
    if late < params.min_start_s * 1e9 or ratio < params.min_start_ratio:
        return
    yield Seen(
        title=f"the GPU is idle for the first {late / 1e9:.0f} s of the job: {format_ratio(ratio)} of the time to "
        "the last step",
        confidence=0.8,
        evidence=(
            Evidence(metric="start_ratio", value=ratio, unit="ratio", threshold=params.min_start_ratio),
            Evidence(metric="start_s", value=late / 1e9, unit="s", threshold=params.min_start_s),
            Evidence(metric="first_step_s", value=(int(steps.starts[0]) - start) / 1e9, unit="s"),
        ),
        cost=cost_of(view, ratio, low=0.5 * ratio, high=ratio, ns_per_step=late // max(1, len(steps))),
        remedies=(
            Remedy(
                id="load-later", text="read the data in a pipeline instead of at the start, or while the model is built"
            ),
            Remedy(id="prepare-offline", text="prepare the data offline, once for all runs"),
        ),
        explanation="Until then the device was idle. The time is paid once per run, and again after every restart.",
    )


DETECTOR = Detector(
    code="GPU001",
    name="late-device-start",
    symptom="Time: slow initialization time",
    introduced_stage="initialization",
    exposed_stage="initialization",
    needs=frozenset({Signal.STEPS, Signal.GPU}),
    params=Params(),
    detect=detect,
    applies=no_gpu,
)
