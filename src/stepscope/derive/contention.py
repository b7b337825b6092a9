"""Who else used the CPUs that the job wanted: neighbours, the job's own companions, the hypervisor, a cgroup quota.
Tasks of the job's own cluster share its work, and are nobody else.

A thread that is runnable but not running waits (schedstat). A job with more runnable threads than CPUs makes itself
wait; only what others took counts here: the CPUs that the job wanted and could have had alone, less those it got,
at most what others, the hypervisor and the quota withheld.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stepscope.derive import rivals
from stepscope.derive.faults import ATTACHED
from stepscope.model.events import ChildStarted

if TYPE_CHECKING:
    from stepscope.derive.steps import Steps
    from stepscope.model.records import I64, HostTable, ProcessTable
    from stepscope.model.session import Session

T = TypeVar("T", "HostTable", "ProcessTable")

MIN_THROTTLED_RATIO = 0.05
"""A cgroup that is throttled for less of the time does not wait for its quota."""
MIN_SPAN_NS = 1_500_000_000
"""Sampling is once a second: less than this says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another process, or several of the same command, that used CPU during the steady steps."""

    name: str
    cores: float
    pids: tuple[int, ...]
    child: bool
    """The job started it."""
    started: ChildStarted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """CPU in cores (CPU-seconds a second) over the steady steps."""

    span_ns: int
    available: float
    """CPUs that the job may use (affinity)."""
    got: float
    """CPU time of the job's measured processes."""
    wanted: float
    """Threads of theirs that ran or were runnable, on average."""
    others: float
    """Without tasks of the job's own cluster."""
    steal: float
    throttled: float
    """CPUs that the cgroup's quota withheld while it throttled."""
    rivals: tuple[Rival, ...]

    @property
    def could_have(self) -> float:
        """CPUs that the job would use alone on the host and without a quota."""
        return max(self.got, min(self.wanted, self.available))

    @property
    def lost(self) -> float:
        """CPUs that others withheld."""
        withheld = self.others + self.steal + self.throttled
        return max(0.0, min(self.could_have - self.got, withheld))

    @property
    def lost_ratio(self) -> float:
        """Share of the wall time that would be saved: lost CPUs of those that it could have, at least one."""
        return self.lost / max(1.0, self.could_have)


def build(session: Session, steps: Steps | None) -> Contention | None:
    """None where the samples do not cover the steady steps; of a process that was attached to, over all samples."""
    if min(len(session.host), len(session.process)) <= 1:
        return None
    if steps is not None and steps.steady_count:
        lo, hi = steps.span
        pid = steps.worker.info.pid
    elif steps is None and session.manifest.mode == ATTACHED:
        lo, hi = int(session.host.at_ns[0]), int(session.host.at_ns[-1])
        pid = session.manifest.job_pid
    else:
        return None
    host = _between(session.host, lo, hi)
    if host is None:
        return None
    span = int(host.at_ns[-1] - host.at_ns[0])
    if span < MIN_SPAN_NS:
        return None
    process = _between(session.process.take(session.process.pid == pid), lo, hi)
    if process is None:
        return None
    process_span = max(1, int(process.at_ns[-1] - process.at_ns[0]))
    run = _delta(process.cpu_user_ns) + _delta(process.cpu_system_ns)
    wait = float(np.maximum(np.diff(process.wait_ns), 0).sum())
    quota = float(host.quota_milli_cpus[-1]) / 1000
    cpus = float(host.cpus[-1])
    got = run / process_span
    wanted = (run + wait) / process_span
    throttled = 0.0
    if quota > 0 and _delta(host.throttled_ns) >= MIN_THROTTLED_RATIO * span:
        throttled = max(0.0, min(wanted, cpus) - quota)
    tasks = _of_cluster(session, int(host.at_ns[0]), int(host.at_ns[-1]))
    return Contention(
        span_ns=span,
        available=cpus,
        got=got,
        wanted=wanted,
        others=max(0.0, _delta(host.others_cpu_ns) - tasks) / span,
        steal=max(0.0, _delta(host.steal_ns) / span),
        throttled=throttled,
        rivals=_rivals(session, int(host.at_ns[0]), int(host.at_ns[-1])),
    )


def _delta(counter: I64) -> float:
    """Growth of a counter; 0 where the host does not tell (-1)."""
    return float(max(0, int(counter[-1]) - int(counter[0]))) if int(counter[0]) >= 0 else 0.0


def _between(table: T, lo: int, hi: int) -> T | None:
    """The samples within a time span, and the last one before it."""
    at = table.at_ns
    first = max(0, int(np.searchsorted(at, lo, side="right")) - 1)
    last = int(np.searchsorted(at, hi, side="right"))
    if last - first < 2:  # noqa: PLR2004 - no difference
        return None
    return table.take(slice(first, last))


def _of_cluster(session: Session, lo: int, hi: int) -> float:
    """CPU time of tasks of the job's own cluster that is counted with the others: they share its work."""
    table = session.rivals
    mine = rivals.of_cluster(session) & (table.at_ns > lo) & (table.at_ns <= hi)
    return float(table.cpu_ns[mine].sum())


def _rivals(session: Session, lo: int, hi: int) -> tuple[Rival, ...]:
    """Other processes by short command, the busiest first."""
    every = rivals.foreign(session)
    mine = every.take((every.at_ns > lo) & (every.at_ns <= hi))
    children = {c.pid: c for w in session.workers for c in w.all(ChildStarted)}
    span = max(1, hi - lo)
    groups: dict[tuple[str, bool], list[int]] = {}
    for row, (name, child) in enumerate(zip(mine.name, rivals.is_child(mine), strict=True)):
        text = session.rival_names[int(name)] if int(name) < len(session.rival_names) else "?"
        groups.setdefault((rivals.short_command(text), bool(child)), []).append(row)
    found = []
    for (text, child), rows in groups.items():
        pids = tuple(sorted({int(p) for p in mine.pid[rows]}))
        started = next((children[p] for p in pids if p in children), None)
        cores = float(mine.cpu_ns[rows].sum()) / span
        found.append(Rival(name=text, cores=cores, pids=pids, child=child, started=started))
    return tuple(sorted(found, key=lambda r: -r.cores))
