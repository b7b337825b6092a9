"""Idle times of a device within the steps, and what its host did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.steps import step_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.steps.step_parts import Breakdown

BUSY = ("device-compute", "collective", "copy-to-device", "copy-from-device", "copy-on-device")
"""Parts in which a device works. A device that waits for another one is idle."""
MIN_GAP_NS = 1_000
"""Kernels of one stream follow each other within a microsecond."""


class Gap(Struct, frozen=True, kw_only=True):
    """One idle time of a device."""

    start_ns: int
    dur_ns: int
    part: str
    """What the host did most of the time, one of ``step_parts.PARTS``."""


class DeviceIdle(Struct, frozen=True, kw_only=True):
    """Idle times of one device within the steps. Ratios are shares of the steps' time."""

    ratio: float
    by_part: Mapping[str, float]
    """Share of the idle time by what the host did meanwhile, largest first."""
    host_ratio: float
    """Idle time with an empty queue: the device waits for the host."""
    gaps: tuple[Gap, ...]
    """The longest gaps first, at most ``MAX_GAPS``."""
    count: int
    """Number of all gaps of at least a microsecond."""


MAX_GAPS = 20


def build(breakdown: Breakdown) -> DeviceIdle:
    """Idle times of the device of a breakdown."""
    times = idle_times(breakdown)
    wall = breakdown.wall_ns
    rest = [part for part in step_parts.PARTS if part not in BUSY]
    shares = {part: breakdown.ratio(part) for part in rest}
    lo, hi = times
    longest = np.argsort(lo - hi, kind="stable")[:MAX_GAPS]
    return DeviceIdle(
        ratio=intervals.total(times) / wall if wall else 0.0,
        by_part=dict(sorted(((p, r) for p, r in shares.items() if r > 0), key=lambda item: -item[1])),
        host_ratio=sum(share for part, share in shares.items() if part != "device-gap"),
        gaps=tuple(
            Gap(start_ns=int(lo[i]), dur_ns=int(hi[i] - lo[i]), part=_part(breakdown, int(lo[i]), int(hi[i])))
            for i in longest.tolist()
        ),
        count=int((hi - lo >= MIN_GAP_NS).sum()),
    )


def idle_times(breakdown: Breakdown) -> Intervals:
    """Times at which the device did no work."""
    return breakdown.when(*(part for part in step_parts.PARTS if part not in BUSY))


def _part(breakdown: Breakdown, start: int, end: int) -> str:
    painting = breakdown.painting
    first = int(np.searchsorted(painting.edges, start, side="right")) - 1
    last = int(np.searchsorted(painting.edges, end, side="left"))
    layers = painting.layer[first:last]
    lengths = np.diff(np.clip(painting.edges[first : last + 1], start, end))
    weights = np.bincount(np.maximum(layers, 0), weights=lengths * (layers >= 0), minlength=1)
    return list(step_parts.PARTS)[int(weights.argmax())]
