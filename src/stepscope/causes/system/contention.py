"""Who else used the CPUs that the job wanted: neighbours, the job's own companions, the hypervisor, a cgroup quota.
Tasks of the job's own cluster share its work and do not count as others, nor do the workers of its DataLoaders.

A thread that is runnable but not running waits (schedstat). Waits of threads do not add up: many wait at once,
including idle pool threads. A step loses

- the time that its own thread waited for a CPU, and
- while that thread was blocked in calls that compute, the time that others needed beyond what they would need with all
  the CPUs that their work can use at once (``causes.system.concurrency``), at most the time they waited. If that number
  is unknown, the loss lies between that of one CPU and that of all, and the report gives the middle. Steps as short as
  a scheduler's slice show it, too: the fastest of them had the CPUs.

A thread that sleeps, or waits for a file, loses nothing by it; what the input loses is the input's.

Only what others took counts: a job with more runnable threads than CPUs makes itself wait.

Serves starved_cpu, and all causes that need to know what neighbours took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec import Struct

from stepscope.causes.job import busy_span
from stepscope.causes.system import concurrency
from stepscope.causes.system.steady_page_faults import ATTACHED
from stepscope.derive.input import loader_processes
from stepscope.derive.machine import rivals, thread_cpu
from stepscope.model.log.events import ChildStarted

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64, HostTable, ProcessTable

T = TypeVar("T", "HostTable", "ProcessTable")

MIN_THROTTLED_RATIO = 0.05
"""A cgroup throttled for a smaller share of the time does not wait for its quota."""
FULL = 0.9
"""Share of the CPUs that a job uses which has none left: the remainder is what no job reaches on a shared host."""
ERROR = 0.25
"""Least error of ``lost_ratio``. Source: docs/benchmarks/contention.md, programs that the model was not made on: the
interval held the truth in 13 of 13 runs, its middle was off by 0 to 25 points of the time."""
MIN_TOLD = 0.5
"""Share of the time for which the number of usable CPUs must be known."""
MIN_STEPS, FASTEST = 30, 0.1
"""Number of steps, and the quantile of their times that stands for an undelayed step."""
MIN_SPAN_NS = 1_500_000_000
"""Sampling is once a second: a shorter span is too uncertain."""


class Rival(Struct, frozen=True, kw_only=True):
    """Another process, or several of the same command, that used CPU during the steady steps."""

    name: str
    cores: float
    pids: tuple[int, ...]
    child: bool
    """Whether it descends from the job."""
    companion: bool
    """Whether it only shares the job's process group. An older session does not say which of both: then both."""
    started: ChildStarted | None
    """When the job was seen to start it."""


class StepThread(Struct, frozen=True, kw_only=True):
    """The thread that makes the steps, and what the others do while it is blocked. Shares of the wall time."""

    run: float
    wait: float
    """Share in which it was runnable and had no CPU."""
    at_once: float | None = None
    """CPUs that the others' work could use at once; None: unknown."""
    at_once_low: float = 1.0
    computing: float = 1.0
    """Share in calls that compute, in which it may be blocked by threads that lack a CPU."""
    fed: float = 0.0
    """Share in which it waits for input, whose threads may lack one."""
    slowed: float = 0.0
    """Excess of the mean step over the fastest ones, as a share of the mean step."""


class Contention(Struct, frozen=True, kw_only=True):
    """CPU in cores (CPU-seconds a second) over the steady steps."""

    span_ns: int
    available: float
    """CPUs that the job may use (affinity)."""
    got: float
    """CPU time of the job's measured processes."""
    wanted: float
    """Threads of these processes that ran or were runnable, on average."""
    others: float
    """CPUs that others used, without tasks of the job's own cluster and workers of its DataLoaders."""
    steal: float
    throttled: float
    """CPUs that the cgroup's quota withheld while it throttled."""
    rivals: tuple[Rival, ...]
    fed: float = 0.0
    """CPUs that workers of the job's DataLoaders used."""
    thread: StepThread | None = None
    """None if threads were not sampled, or there are no steps: all threads are then taken together."""

    @property
    def withheld(self) -> float:
        """CPUs that others had."""
        return self.others + self.steal + self.throttled

    @property
    def full(self) -> bool:
        """Whether the job itself uses all CPUs that it may use, or all of its quota."""
        return self.throttled > 0 or self.got >= FULL * self.available

    @property
    def crowd(self) -> float:
        """CPUs that its threads would use alone on the host and without a quota, if none of them waited for another."""
        return max(self.got, min(self.wanted, self.available))

    @property
    def lost(self) -> float:
        """Part of ``crowd`` that others withheld."""
        return max(0.0, min(self.crowd - self.got, self.withheld))

    @property
    def could_have(self) -> float:
        """CPUs that the job would use alone on the host and without a quota: no more than there are."""
        if self.thread is None:
            return self.crowd
        return max(self.got, min(self.available, self.got / (1.0 - min(self.lost_ratio, 0.99))))

    @property
    def lost_ratio(self) -> float:
        """Share of the wall time that would be saved."""
        if self.thread is None:
            return self.lost / max(1.0, self.crowd)
        low, high = self._bounds()
        middle = (low + high) / 2 if self.thread.at_once is None else self._lost(self.thread.at_once)
        return min(self.most, self.freed, max(low, min(high, max(middle, self.thread.slowed))))

    @property
    def most(self) -> float:
        """Share in which the step's thread waits for a CPU, or computes with threads that may wait for one."""
        return 1.0 if self.thread is None else min(1.0, self.thread.wait + self.thread.computing)

    @property
    def freed(self) -> float:
        """Share that would be saved at most: its threads do the same work, and there are no more CPUs than these. Where
        more threads are runnable than there are CPUs they wait for each other, too.
        """
        return max(0.0, 1.0 - self.got / max(1e-9, self.available))

    @property
    def low(self) -> float:
        """Lower end of ``lost_ratio``, at least the measured error away from it."""
        near = (1.0 - ERROR) * self.lost_ratio
        return near if self.thread is None else min(near, self._bounds()[0])

    @property
    def high(self) -> float:
        """Upper end, likewise."""
        far = min(1.0, (1.0 + ERROR) * self.lost_ratio)
        if self.thread is None:
            return far
        most = min(self.most + self.thread.fed, (1.0 + ERROR) * self.freed)
        return max(self.lost_ratio, min(most, max(far, self._bounds()[1])))

    def _bounds(self) -> tuple[float, float]:
        low = self.thread.at_once_low if self.thread is not None else 1.0
        ends = self._lost(low), self._lost(self.available)
        return min(ends), max(ends)

    def _lost(self, at_once: float) -> float:
        """Loss if the work that the step's thread is blocked for could use ``at_once`` CPUs."""
        if self.thread is None:
            return 0.0
        run, wait = self.thread.run, self.thread.wait
        blocked = max(0.0, 1.0 - run - wait)
        others_run, others_wait = max(0.0, self.got - run), max(0.0, self.wanted - self.got - wait)
        late = min(blocked - others_run / at_once, others_wait, self.withheld / at_once)
        return max(0.0, min(wait + max(0.0, late), self.withheld, 1.0))


def build(view: SessionView) -> Contention | None:
    """None if the samples do not cover the steady steps; for a process that was attached to, over all samples."""
    session, steps = view.session, view.steps
    if min(len(session.host), len(session.process)) <= 1:
        return None
    if steps is not None and steps.steady_count:
        lo, hi = view.get(busy_span.build)
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
    fed = loader_processes.cores(session, int(host.at_ns[0]), int(host.at_ns[-1]))
    return Contention(
        span_ns=span,
        available=cpus,
        got=got,
        wanted=wanted,
        others=max(0.0, (_delta(host.others_cpu_ns) - tasks) / span - fed),
        fed=fed,
        steal=max(0.0, _delta(host.steal_ns) / span),
        throttled=throttled,
        rivals=_rivals(session, int(host.at_ns[0]), int(host.at_ns[-1])),
        thread=_step_thread(view, steps, (int(process.at_ns[0]), int(process.at_ns[-1])), cpus) if steps else None,
    )


def _step_thread(view: SessionView, steps: Steps, window: tuple[int, int], cpus: float) -> StepThread | None:
    """None if it was not sampled."""
    mine = thread_cpu.rows(view.session, steps.worker, steps.thread)
    first, last = (int(np.searchsorted(mine.at_ns, at, side="right")) - 1 for at in window)
    if last < 0 or window[1] <= window[0]:
        return None
    length, first = window[1] - window[0], max(0, first)  # a thread has a row for each second in which it did something
    run = int(mine.run_ns[last] - mine.run_ns[first]) / length
    wait = int(mine.wait_ns[last] - mine.wait_ns[first]) / length
    anatomy = view.anatomy
    input_ratio = anatomy.ratio("input-wait") if anatomy is not None else 0.0
    blocked = max(1e-9, 1.0 - run - wait)
    for_input = min(1.0, input_ratio / blocked)
    low, at_once = _at_once(view, steps, for_input, cpus)
    return StepThread(
        run=run,
        wait=wait,
        at_once=at_once,
        at_once_low=low,
        computing=anatomy.ratio("call") if anatomy is not None else 1.0,
        fed=input_ratio,
        slowed=_slowed(view, steps),
    )


def _at_once(view: SessionView, steps: Steps, for_input: float, cpus: float) -> tuple[float, float | None]:
    """(least, CPUs) that the work for which the step's thread is blocked could use at once; ``for_input``: share of the
    input.
    """
    trace = view.traces.main
    ops, low = concurrency.of_ops(trace, cpus) if trace is not None else (None, 1.0)
    made = concurrency.of_input(steps, view.pipeline, for_input, cpus) if view.pipeline is not None else None
    known = [(share, at_once) for share, at_once in ((for_input, made), (1.0 - for_input, ops)) if at_once is not None]
    told = sum(share for share, _ in known)
    if told < MIN_TOLD:
        return 1.0, None
    return 1.0 + (1.0 - for_input) * (low - 1.0), sum(share * at_once for share, at_once in known) / told


def _slowed(view: SessionView, steps: Steps) -> float:
    """Excess of the mean step over the fastest steps, without waits for the input, as a share of the mean step."""
    anatomy = view.anatomy
    if anatomy is None or not len(anatomy.per_step):
        return 0.0
    durs = anatomy.per_step.sum(axis=1) - anatomy.per_step_of("input-wait")
    usual = durs[steps.recurring[steps.steady]]
    mean = anatomy.wall_ns / len(anatomy.per_step)
    if len(usual) < MIN_STEPS or mean <= 0:
        return 0.0
    return max(0.0, float(usual.mean() - np.quantile(usual, FASTEST))) / mean


def _delta(counter: I64) -> float:
    """Growth of a counter; 0 if the host does not report it (-1)."""
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
    """CPU time of tasks of the job's own cluster that is counted with the others: they share its work. Workers of its
    DataLoaders, measured or not, are counted apart (``fed``).
    """
    table = session.rivals
    mine = rivals.of_cluster(session) & ~np.isin(table.pid, list(loader_processes.pids(session)))
    mine &= (table.at_ns > lo) & (table.at_ns <= hi)
    return float(table.cpu_ns[mine].sum())


def _rivals(session: Session, lo: int, hi: int) -> tuple[Rival, ...]:
    """Other processes by short command, the busiest first."""
    every = rivals.foreign(session)
    mine = every.take((every.at_ns > lo) & (every.at_ns <= hi))
    mine = mine.take(~np.isin(mine.pid, list(loader_processes.pids(session))))
    children = {c.pid: c for w in session.workers for c in w.all(ChildStarted)}
    span = max(1, hi - lo)
    groups: dict[tuple[str, bool, bool], list[int]] = {}
    kin = zip(mine.name, rivals.is_child(mine), rivals.is_companion(mine, session.rivals), strict=True)
    for row, (name, child, companion) in enumerate(kin):
        text = session.rival_names[int(name)] if int(name) < len(session.rival_names) else "?"
        groups.setdefault((rivals.short_command(text), bool(child), bool(companion)), []).append(row)
    found = []
    for (text, child, companion), rows in groups.items():
        pids = tuple(sorted({int(p) for p in mine.pid[rows]}))
        started = next((children[p] for p in pids if p in children), None)
        cores = float(mine.cpu_ns[rows].sum()) / span
        found.append(Rival(name=text, cores=cores, pids=pids, child=child, companion=companion, started=started))
    return tuple(sorted(found, key=lambda r: -r.cores))
