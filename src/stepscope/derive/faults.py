"""Page faults of the process that makes the steps: how many a step, and what share of its CPU time they take.

Arithmetic over counters, no profiler: faults x what one costs on this host (the collector measures it) / CPU time. The
steady part is cut into equal parts, so that faults which never end are told from those of a warm-up that lies in it,
and from bursts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive import counters
from stepscope.derive.memory import own_bytes, step_numbers

if TYPE_CHECKING:
    from stepscope.derive.steps import Steps
    from stepscope.model.records import F64, I64, MemoryTable, ProcessTable
    from stepscope.model.session import Session

ATTACHED = "attach"
"""The manifest's mode of a process that was started without stepscope."""
PARTS, MIN_PARTS = 8, 3
PAGE_BYTES = 4096
MIN_ROUNDS = 3
"""Measurements of a fault's cost: fewer say little on a busy host."""
_QUARTILE, _FAST = 0.25, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCost:
    """CPU time per page on this host, in nanoseconds: the median of the collector's rounds, and their quartiles."""

    fault_ns: float
    low_ns: float
    high_ns: float
    release_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults of the steady steps."""

    pid: int
    steps: float
    """Steps within what was sampled; 0 where there are none."""
    span_ns: int
    minor: int
    major: int
    cpu_ns: int
    system_ns: int
    wait_ns: int
    """Time that its threads were runnable and waited for a CPU."""
    cost: FaultCost
    part_ratios: F64
    """Share of CPU time in faults, in each part of the steady steps. float64[part]."""
    kept_ratio: float
    """Pages that came to stay (growth of memory of its own) per fault; 0 where what is touched is given back."""

    @property
    def per_step(self) -> float:
        """Faults per step."""
        return (self.minor + self.major) / max(1.0, self.steps)

    @property
    def per_second(self) -> float:
        """Faults per second of wall time."""
        return (self.minor + self.major) / (self.span_ns / 1e9)

    @property
    def ratio(self) -> float:
        """Share of CPU time in faults. What is spent in the kernel bounds it."""
        return min(self.minor * self.cost.fault_ns, self.system_ns) / max(1, self.cpu_ns)

    @property
    def churn_ratio(self) -> float:
        """Share of CPU time in faults and in giving the same pages back."""
        both = self.minor * (self.cost.fault_ns + self.cost.release_ns * (1.0 - self.kept_ratio))
        return min(both, self.system_ns) / max(1, self.cpu_ns)

    @property
    def system_ratio(self) -> float:
        """Share of CPU time in the kernel."""
        return self.system_ns / max(1, self.cpu_ns)

    @property
    def busy(self) -> float:
        """Share of wall time in which the process ran or wanted to: 1 at most, however many threads it has."""
        return min(1.0, (self.cpu_ns + self.wait_ns) / max(1, self.span_ns))

    @property
    def lasting_ratio(self) -> float:
        """Share that three of four parts reach: near ``ratio`` for faults of every step, near 0 for a warm-up."""
        return min(self.ratio, float(np.quantile(self.part_ratios, _QUARTILE)))


def build(session: Session, steps: Steps | None) -> Faults | None:
    """None where too few samples lie within the steady steps, or nobody measured what a fault costs.

    Of a process that was attached to, which makes no steps that could be seen: over all that was sampled. Who attaches
    looks at what has been up for a while.
    """
    cost = cost_of(session.memory)
    if steps is not None:
        lo, hi = steps.span
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
        cpu_ns=_total(cpu),
        system_ns=_total(table.cpu_system_ns),
        wait_ns=_total(table.wait_ns),
        cost=cost,
        part_ratios=_parts(table, cpu, cost),
        kept_ratio=min(1.0, grown / minor) if minor else 0.0,
    )


def cost_of(memory: MemoryTable) -> FaultCost | None:
    """What the collector measured; None where it measured too little."""
    faults = memory.fault_ns[memory.fault_ns > 0]
    if len(faults) < MIN_ROUNDS:
        return None
    low, middle, high = np.quantile(faults, [0.0, _FAST, 0.5])
    released = memory.release_ns[memory.release_ns > 0]
    return FaultCost(
        fault_ns=float(middle),
        low_ns=float(low),
        high_ns=float(high),
        release_ns=float(np.median(released)) if len(released) else 0.0,
    )


def _total(counter: I64) -> int:
    return int(counters.growth(counter).sum())


def _parts(table: ProcessTable, cpu: I64, cost: FaultCost) -> F64:
    """Share of CPU time in faults, in parts of about equal length."""
    count = min(PARTS, len(table) - 1)
    edges = np.linspace(0, len(table) - 1, count + 1).round().astype(np.int64)
    faults = np.diff(table.minor_faults[edges])
    used = np.diff(cpu[edges])
    result: F64 = np.where(used > 0, faults * cost.fault_ns / np.maximum(used, 1), 0.0)
    return result
