"""Memory of the process that makes the steps: whether it grows as long as the steps continue.

Only the process's own memory counts: the kernel can reclaim pages of files and shared memory (mapped data sets, our
ring). The growth is that of the steady steps, so it does not include memory for a model, a first trace or a shuffle
buffer. The slope of the tail excludes memory that fills once and then stays constant. The address space excludes memory
that was reserved before and is only touched now (an arena, a replay buffer of zeros): it grows with a leak, but not
with that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import trend
from stepscope.model.log.events import DatasetMade, Name, Traced
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.numeric.trend import Trend
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64, I64, ProcessTable

MIN_TAIL = 0.4
"""Least share of the whole slope that the tail of a lasting growth has: an arena grows in jumps."""
MIN_RESERVED_RATIO = 0.5
"""Growth of the address space per growth of memory; a leak has about 1."""


class MemoryGrowth(Struct, frozen=True, kw_only=True):
    """Memory of the steady steps over their number."""

    trend: Trend
    """Bytes, and bytes per step."""
    goes_on: bool
    """Whether it rises over the whole run and has not levelled off."""
    reserved_ratio: float
    """Growth of the address space per growth of memory; 1 if unknown."""
    span_ns: int
    steps: int
    graphs: int
    """Graphs traced within the steady steps."""
    major_faults: int
    minor_faults: int
    system_ns: int
    """CPU time in the kernel."""
    cache_fills: bool
    """Whether the input has a cache whose first pass may not have ended within the run."""

    @property
    def per_second(self) -> float:
        """Bytes a second."""
        return self.trend.rise / (self.span_ns / 1e9) if self.span_ns else 0.0


def build(view: StepsView) -> MemoryGrowth | None:
    """None if too few samples of the process lie within the steady ones."""
    session, steps = view.session, view.steps
    lo, hi = steps.span
    table = session.process.take(session.process.pid == steps.worker.info.pid)
    table = table.take((table.at_ns >= lo) & (table.at_ns <= hi))
    if len(table) < trend.MIN_POINTS:
        return None
    at = step_numbers(steps, table.at_ns)
    line = trend.fit(at, own_bytes(table).astype(np.float64))
    if line is None:
        return None
    space = trend.fit(at, table.vm_bytes.astype(np.float64))
    known = space is not None and (table.vm_bytes > 0).all()
    traced = [t for t in steps.worker.all(Traced) if lo <= t.at <= hi]
    return MemoryGrowth(
        trend=line,
        goes_on=line.rises and line.goes_on(MIN_TAIL),
        reserved_ratio=max(0.0, space.rise) / line.rise if known and space is not None and line.rise > 0 else 1.0,
        span_ns=int(table.at_ns[-1] - table.at_ns[0]),
        steps=int(at[-1] - at[0]),
        graphs=len(traced),
        major_faults=int(table.major_faults[-1] - table.major_faults[0]),
        minor_faults=int(table.minor_faults[-1] - table.minor_faults[0]),
        system_ns=int(table.cpu_system_ns[-1] - table.cpu_system_ns[0]),
        cache_fills=_cache_fills(steps),
    )


def own_bytes(table: ProcessTable) -> I64:
    """Resident memory without files and shared memory; including them if an older session does not separate them."""
    result: I64 = table.rss_bytes - np.maximum(table.shared_bytes, 0)
    return result


def step_numbers(steps: Steps, at: I64) -> F64:
    """How many steps have begun at each time, with the part of the step that runs. Steps in gaps are spread evenly."""
    number = np.clip(np.searchsorted(steps.starts, at, side="right") - 1, 0, len(steps) - 1)
    part = (at - steps.starts[number]) / np.maximum(1, steps.durations[number])
    result: F64 = (number.astype(np.float64) + np.clip(part, 0.0, 1.0)) * (steps.count / len(steps))
    return result


def _cache_fills(steps: Steps) -> bool:
    """Whether there is a cache, and nothing shows that its first pass ended before the middle of the steady steps."""
    caches = [d for d in steps.worker.all(DatasetMade) if d.cls.startswith("Cache")]
    if not caches:
        return False
    middle = int(steps.windows[0][steps.steady_count // 2])
    records = steps.worker.records
    names = [n.id for n in steps.worker.all(Name) if n.text == "on_epoch_end"]
    ended = (records.kind == Kind.HOOK) & np.isin(records.name, names)
    ended |= (records.kind == Kind.NEXT) & ((records.flags & Flag.END) != 0)
    return not (ended & (records.start_ns < middle)).any() and not _consumed(steps, caches, middle)


def _consumed(steps: Steps, caches: list[DatasetMade], until: int) -> bool:
    """Whether as many samples were taken until then as the largest cache holds."""
    if any(d.cardinality <= 0 for d in caches):
        return False
    taken = int(steps.samples[steps.starts < until].sum())
    return taken >= max(d.cardinality * max(1, d.batch) for d in caches)
