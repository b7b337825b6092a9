"""The CPU time that the input takes from the steps where the job's CPUs are full.

A batch that is ready in time costs no wait, but the threads that made it ran on CPUs that the step's ops wanted.

Serves input_takes_cpus and slow_input_stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import input_work
from stepscope.causes.system import contention, gpu

if TYPE_CHECKING:
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView

MAX_LOST_RATIO = 0.15
"""If others take more of its CPUs, CPU time says little about the job."""
FULL = 1.0
"""CPUs that the job's threads run on or wait for, over those that it may use, from which they are full."""


class InputCpu(Struct, frozen=True, kw_only=True):
    """CPU time of the input within the steady steps."""

    ratio: float
    """Share of the time of all CPUs that the job may use, by tf.data's clocks."""
    most: float
    """The same of all that the process used beyond its fast steps."""
    wanted: float
    """CPUs that its threads ran on or waited for."""
    available: float
    stage: Stage
    """The stage that takes most."""
    stage_ratio: float
    """Its part of the input's CPU time."""


def build(view: StepsView) -> InputCpu | None:
    """None if the CPUs are not full, a device computes, or user Python makes the batches, which has its own account."""
    others, work = view.get(contention.build), view.get(input_work.build)
    if others is None or work is None or work.python or view.get(gpu.build):
        return None
    if others.lost_ratio >= MAX_LOST_RATIO or others.wanted < FULL * others.available:
        return None
    times = [stage.cpu_ns for stage in work.layout.stages]
    whole = sum(times)
    if whole <= 0 or work.wall_ns <= 0:
        return None
    most = max(range(len(times)), key=lambda at: times[at])
    cpus_ns = work.wall_ns * work.layout.consumer.cores
    return InputCpu(
        ratio=min(1.0, work.shown_ns / cpus_ns),
        most=min(1.0, whole / cpus_ns),
        wanted=others.wanted,
        available=others.available,
        stage=work.stages[most],
        stage_ratio=times[most] / whole,
    )
