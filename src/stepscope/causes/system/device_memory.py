"""What the job held of a GPU's memory when an exception said that there was no more, and whether it had grown with the
steps, from NVML's samples.

Serves MEM004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.log.memory import MemoryLacked
    from stepscope.tables.records import I64

MIN_SAMPLES = 5
MIN_GROWTH = 0.5
"""Median over mean of the growth with a step, from which it is steady: less came at a few moments."""
SMALL_GROWTH = 0.2
"""Of the device's memory: less is no growth."""


class DeviceMemory(Struct, frozen=True, kw_only=True):
    """Memory of one device at the end. Bytes."""

    device: str
    """As the exception names it: GPU:0."""
    total: int
    held: int
    """By the job, most that was seen; -1: NVML does not say."""
    per_step: float
    """By which it grew with each step; 0: it did not grow steadily."""


def build(view: SessionView, error: MemoryLacked | None) -> DeviceMemory | None:
    """The device that had no more memory; None if it was the host, or was not sampled."""
    if error is None or not error.device.startswith("GPU:"):
        return None
    session, names = view.session, view.session.resource_names
    wanted = f"gpu:{error.device.removeprefix('GPU:')} "
    numbers = [i for i, name in enumerate(names) if name.startswith(wanted)]
    mine = session.gpus.take(np.isin(session.gpus.name, numbers))
    if not len(mine):
        return None
    held = mine.job_reserved_bytes
    held = held if (held > 0).any() else mine.reserved_bytes
    total = int(mine.total_bytes.max())
    grown = _per_step(view.steps, mine.at_ns, held, total)
    return DeviceMemory(device=error.device, total=total, held=int(held.max()), per_step=grown)


def _per_step(steps: Steps | None, at: I64, held: I64, total: int) -> float:
    """Bytes that came with each step, if they came steadily and make up a large part of the device's memory."""
    if steps is None or not len(steps.starts):
        return 0.0
    within = (at >= steps.starts[0]) & (at <= steps.ends[-1])
    done, held = np.searchsorted(steps.ends, at[within], side="right"), held[within]
    if len(held) < MIN_SAMPLES or held[-1] - held[0] < SMALL_GROWTH * total:
        return 0.0
    count = np.diff(done)
    rates = np.diff(held)[count > 0] / count[count > 0]
    mean = float(held[-1] - held[0]) / max(1, int(done[-1] - done[0]))
    usual = float(np.median(rates)) if len(rates) else 0.0
    return usual if usual >= MIN_GROWTH * mean else 0.0
