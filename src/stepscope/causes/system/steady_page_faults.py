"""Page faults of the process that makes the steps: their number per step and their share of its CPU time.

Arithmetic over counters, no profiler: faults x the cost of one on this host (measured by the collector) / CPU time. A
fault of a huge page costs fifty times one of a small page and also counts as one. Their number is only known for the
whole host: those of this process are at most its faults, and its time in the kernel bounds their cost. The steady part
is cut into equal parts, to distinguish faults that never end from those of a warm-up within it, and from bursts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import busy_span
from stepscope.causes.system.memory_leak import own_bytes, step_numbers
from stepscope.derive.machine import counters

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import F64, I64, MemoryTable, ProcessTable

ATTACHED = "attach"
"""The manifest's mode for a process that was started without stepscope."""
PARTS, MIN_PARTS = 8, 3
PAGE_BYTES = 4096
HUGE_PAGES = 512
"""Small pages per huge page of 2 MiB: the cost of other sizes is not measured (``collector.samplers.fault_cost``)."""
MIN_ROUNDS = 3
"""Measurements of a fault's cost: on a busy host fewer are too uncertain."""
_QUARTILE, _FAST = 0.25, 0.1


class FaultCost(Struct, frozen=True, kw_only=True):
    """CPU time per page on this host, in nanoseconds: of the collector's rounds the fastest tenth, the fastest and the
    median. What else runs on the host can only make a round slower."""

    fault_ns: float
    low_ns: float
    high_ns: float
    release_ns: float
    huge_ns: float = 0.0
    """Cost of a huge page; 0 if the collector received none: all faults are then treated as small ones."""
    huge_release_ns: float = 0.0


class Faults(Struct, frozen=True, kw_only=True):
    """Faults of the steady steps."""

    pid: int
    steps: float
    """Steps within the sampled time; 0 if there are none."""
    span_ns: int
    minor: int
    major: int
    huge: int
    """Upper bound of the faults in ``minor`` that received huge pages: others on the host may have received some
    too."""
    faulting_ns: float
    """Time of the minor faults."""
    cpu_ns: int
    system_ns: int
    wait_ns: int
    """Time that its threads were runnable and waited for a CPU."""
    cost: FaultCost
    part_ratios: F64
    """Share of CPU time in faults, in each part of the steady steps. float64[part]."""
    kept_ratio: float
    """Pages that stayed (growth of its own memory) per fault; 0 if all touched pages are returned."""

    @property
    def per_step(self) -> float:
        """Faults per step."""
        return (self.minor + self.major) / max(1.0, self.steps)

    @property
    def per_second(self) -> float:
        """Faults per second of wall time."""
        return (self.minor + self.major) / (self.span_ns / 1e9)

    @property
    def huge_per_step(self) -> float:
        """Faults of huge pages per step."""
        return self.huge / max(1.0, self.steps)

    @property
    def huge_per_second(self) -> float:
        """Faults of huge pages per second."""
        return self.huge / (self.span_ns / 1e9)

    @property
    def ratio(self) -> float:
        """Share of CPU time in faults, bounded by the time in the kernel."""
        return min(self.faulting_ns, self.system_ns) / max(1, self.cpu_ns)

    @property
    def churn_ratio(self) -> float:
        """Share of CPU time in faults and in returning the same pages."""
        released = (self.minor - self.huge) * self.cost.release_ns + self.huge * self.cost.huge_release_ns
        both = self.faulting_ns + released * (1.0 - self.kept_ratio)
        return min(both, self.system_ns) / max(1, self.cpu_ns)

    @property
    def system_ratio(self) -> float:
        """Share of CPU time in the kernel."""
        return self.system_ns / max(1, self.cpu_ns)

    @property
    def busy(self) -> float:
        """Share of wall time in which the process ran or was ready to: at most 1, however many threads it has."""
        return min(1.0, (self.cpu_ns + self.wait_ns) / max(1, self.span_ns))

    @property
    def lasting_ratio(self) -> float:
        """Share that three of four parts reach: near ``ratio`` for faults of every step, near 0 for a warm-up."""
        return min(self.ratio, float(np.quantile(self.part_ratios, _QUARTILE)))


def build(view: SessionView) -> Faults | None:
    """None if too few samples lie within the steady steps, or the cost of a fault was not measured.

    For a process that was attached to and has no visible steps: over all samples, because such a process has usually
    been running for a while.
    """
    session, steps = view.session, view.steps
    cost = cost_of(session.memory)
    if steps is not None:
        lo, hi = view.get(busy_span.build)
        pid = steps.worker.info.pid
        table = session.process.take((session.process.at_ns >= lo) & (session.process.at_ns <= hi))
    elif session.manifest.mode == ATTACHED:
        pid, table = session.manifest.job_pid, session.process
    else:
        return None
    table = table.take(table.pid == pid)
    if cost is None or len(table) <= MIN_PARTS:
        return None
    cpu = table.cpu_user_ns + table.cpu_system_ns
    minor = _total(table.minor_faults)
    huge = huge_faults(table, session.memory, cost)
    pages = minor + (HUGE_PAGES - 1) * int(huge.sum())
    if _total(cpu) == 0:
        return None
    number = step_numbers(steps, table.at_ns[[0, -1]]) if steps is not None else np.zeros(2)
    grown = max(0, int(own_bytes(table)[-1] - own_bytes(table)[0])) / PAGE_BYTES
    return Faults(
        pid=pid,
        steps=float(number[1] - number[0]),
        span_ns=int(table.at_ns[-1] - table.at_ns[0]),
        minor=minor,
        major=_total(table.major_faults),
        huge=int(huge.sum()),
        faulting_ns=float(faulting_ns(table, huge, cost).sum()),
        cpu_ns=_total(cpu),
        system_ns=_total(table.cpu_system_ns),
        wait_ns=_total(table.wait_ns),
        cost=cost,
        part_ratios=_parts(faulting_ns(table, huge, cost), cpu),
        kept_ratio=min(1.0, grown / pages) if pages else 0.0,
    )


def cost_of(memory: MemoryTable) -> FaultCost | None:
    """The collector's measurement; None if it measured too little."""
    faults = memory.fault_ns[memory.fault_ns > 0]
    if len(faults) < MIN_ROUNDS:
        return None
    low, middle, high = np.quantile(faults, [0.0, _FAST, 0.5])
    released = memory.release_ns[memory.release_ns > 0]
    huge = memory.huge_fault_ns[memory.huge_fault_ns > 0]
    huge_released = memory.huge_release_ns[memory.huge_release_ns > 0]
    return FaultCost(
        huge_ns=float(np.quantile(huge, _FAST)) if len(huge) else 0.0,
        huge_release_ns=float(np.median(huge_released)) if len(huge_released) else 0.0,
        fault_ns=float(middle),
        low_ns=float(low),
        high_ns=float(high),
        release_ns=float(np.median(released)) if len(released) else 0.0,
    )


def huge_faults(table: ProcessTable, memory: MemoryTable, cost: FaultCost) -> I64:
    """Upper bound of a process's faults that received huge pages, between successive samples. int64[sample - 1]."""
    known = memory.huge_faults >= 0
    minor = counters.growth(table.minor_faults)
    if cost.huge_ns <= 0 or not known.any():
        return np.zeros_like(minor)
    on_host = np.interp(table.at_ns, memory.at_ns[known], memory.huge_faults[known])
    found: I64 = np.minimum(np.maximum(np.diff(on_host), 0), minor).astype(np.int64)
    return found


def faulting_ns(table: ProcessTable, huge: I64, cost: FaultCost) -> F64:
    """Time of a process's faults between successive samples. float64[sample - 1]."""
    small = counters.growth(table.minor_faults) - huge
    found: F64 = small * cost.fault_ns + huge * cost.huge_ns
    return found


def _total(counter: I64) -> int:
    return int(counters.growth(counter).sum())


def _parts(faulting: F64, cpu: I64) -> F64:
    """Share of CPU time in faults, in parts of about equal length."""
    count = min(PARTS, len(faulting))
    edges = np.linspace(0, len(faulting), count + 1).round().astype(np.int64)
    spent = np.diff(np.concatenate(([0.0], np.cumsum(faulting)))[edges])
    used = np.diff(cpu[edges])
    result: F64 = np.where(used > 0, spent / np.maximum(used, 1), 0.0)
    return result
