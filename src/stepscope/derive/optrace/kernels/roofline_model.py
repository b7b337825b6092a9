"""Ops under the device's roofline: what bounds each of them, and how near to the bound it is.

An op that does F operations on B bytes cannot take less than F over the peak rate of the device, nor less than B over
the bandwidth of its memory. The longer of the two times is its bound, and the ratio of that bound to the op's time says
how near it is. This needs the compiler's figures for the op and the trace's figures for the device: XLA records them,
TensorFlow's own kernels do not.

Source: Williams, Waterman, Patterson: Roofline (CACM 2009).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work
from stepscope.tables.optrace import Category
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.tables.optrace import OpTrace, Plane
    from stepscope.tables.records import I64


class Peak(Struct, frozen=True, kw_only=True):
    """Peak rates of a device."""

    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """Operations per byte above which computing is the bound."""
        return self.flops_per_s / self.bytes_per_s


class RooflinePoint(Struct, frozen=True, kw_only=True):
    """One op under the roofline; means over its runs."""

    name: str
    type: str
    calls: int
    dur_ns: float
    flops: float
    bytes: float
    bound: Literal["compute", "memory"]
    reached_ratio: float
    """Shortest possible time over the time taken; above 1 if the compiler's figures are too high."""

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes if self.bytes else float("inf")


def peak(plane: Plane) -> Peak | None:
    """The peak rates recorded in the trace; None if there are none."""
    stats = plane.stats
    flops = stats.get("peak_teraflops_per_second")
    memory = stats.get("peak_hbm_bw_gigabytes_per_second")
    if not isinstance(flops, (int, float)) or not isinstance(memory, (int, float)) or flops <= 0 or memory <= 0:
        return None
    return Peak(flops_per_s=1e12 * flops, bytes_per_s=1e9 * memory)


def build(trace: OpTrace, device: int, periods: Periods) -> tuple[RooflinePoint, ...]:
    """The ops of a device with known work, most time first."""
    top = peak(trace.planes[device])
    if top is None:
        return ()
    events = trace.events
    rows = device_work.rows(trace, device, Category.KERNEL, Category.OP)
    rows = rows[intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], periods.windows) > 0]
    flops, moved = trace.ints(StatName.FLOPS, 0)[rows], trace.ints(StatName.BYTES_ACCESSED, 0)[rows]
    known = (flops > 0) | (moved > 0)
    rows, flops, moved = rows[known], flops[known], moved[known]
    meta = events.meta[rows]
    found = [_placed(trace, int(m), rows[meta == m], flops[meta == m], moved[meta == m], top) for m in np.unique(meta)]
    return tuple(sorted(found, key=lambda p: -p.dur_ns * p.calls))


def _placed(trace: OpTrace, meta: int, rows: I64, flops: I64, moved: I64, top: Peak) -> RooflinePoint:
    dur = float(trace.events.dur_ns[rows].mean())
    work, traffic = float(flops.mean()), float(moved.mean())
    compute_s, memory_s = work / top.flops_per_s, traffic / top.bytes_per_s
    return RooflinePoint(
        name=trace.strings[trace.metas.op_name[meta]] or trace.strings[trace.metas.name[meta]],
        type=trace.strings[trace.metas.op_type[meta]],
        calls=len(rows),
        dur_ns=dur,
        flops=work,
        bytes=traffic,
        bound="compute" if compute_s >= memory_s else "memory",
        reached_ratio=max(compute_s, memory_s) / (1e-9 * dur) if dur else 0.0,
    )
