"""Values that the host reads from a device one by one (``.item()``, ``float(loss)``), and the idle time behind each.

To read a value the host waits until the device has done all of its queue. Whatever comes next is launched only then, so
the device is idle from the end of the small copy to the start of the next work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work

if TYPE_CHECKING:
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.tables.optrace import OpTrace

MAX_BYTES = 64
"""A value, or a few; larger copies bring results."""


class Readbacks(Struct, frozen=True, kw_only=True):
    """The values read within the steps."""

    per_step: float
    idle_ratio: float
    """Share of the steps in which the device is idle right after such a copy."""


def build(trace: OpTrace, device: int, periods: Periods) -> Readbacks:
    """The values read from a device."""
    rows = device_work.copies(trace, device, device_work.FROM_DEVICE)
    sizes = device_work.copied_bytes(trace, rows)
    rows = rows[(sizes > 0) & (sizes <= MAX_BYTES)]
    events, wall = trace.events, int(periods.dur_ns.sum())
    rows = rows[intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], periods.windows) > 0]
    if not len(rows) or not wall:
        return Readbacks(per_step=0.0, idle_ratio=0.0)
    lo, hi = device_work.busy(trace, device)
    piece = np.searchsorted(lo, events.start_ns[rows], side="right") - 1
    piece = np.unique(piece[(events.end_ns[rows] >= hi[piece]) & (piece + 1 < len(lo))])
    idle = intervals.clipped_sum(hi[piece], lo[piece + 1], periods.windows)
    return Readbacks(per_step=len(rows) / len(periods), idle_ratio=float(idle.sum()) / wall)
