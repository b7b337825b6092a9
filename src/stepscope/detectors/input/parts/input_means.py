"""What a slow input can be given other than less work: more cores, or the device.

Threads help only where cores are free; a device helps only where there is one that waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.system import contention, gpu
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.steps_view import StepsView

MAX_BUSY = Ratio(0.9)
"""A device that is busier has no time for the input's work."""
NEEDS_CORES = frozenset({"parallel-map", "parallel-reads", "parallel-interleave", "prefetch"})
"""Remedies that let more of the same work run at a time."""


def cores(view: StepsView) -> Remedy | None:
    """More CPUs, if the job uses all that it may: more threads then take from the steps what they give the input."""
    cpus = view.get(contention.build)
    if cpus is None or not cpus.full:
        return None
    where = "its cgroup's quota" if cpus.throttled else f"{cpus.available:.0f} CPU{'s' if cpus.available > 1 else ''}"
    text = f"the job uses {cpus.got:.1f} of {where}, so more threads gain nothing: "
    text += "give it more CPUs, or the input less work"
    return Remedy(id="more-cores", text=text, safety="safe")


def device(view: StepsView) -> Remedy | None:
    """The GPU, if it waits: it does the map's work on a whole batch at once."""
    found = view.get(gpu.build)
    busy = max((one.busy_ratio for one in found), default=1.0)
    if busy >= MAX_BUSY:
        return None
    text = (
        f"the GPU is busy {format_ratio(busy)} of the time: do the map's work there, on whole batches, as the model's "
    )
    text += "first layers (Keras preprocessing layers), and send what was decoded (uint8)"
    return Remedy(id="on-the-device", text=text, safety="review")


def in_order(view: StepsView, advised: Sequence[Remedy], *, maps: bool) -> tuple[Remedy, ...]:
    """The remedies of a slow input, with those that the machine allows.

    Args:
        view: the job.
        advised: remedies by the pipeline alone, the first first.
        maps: the slow stage runs ops that a device could run.
    """
    more, gpu_too = cores(view), device(view) if maps else None
    if more is not None:
        advised = [remedy for remedy in advised if remedy.id not in NEEDS_CORES]
    return (*advised, *(remedy for remedy in (gpu_too, more) if remedy is not None))
