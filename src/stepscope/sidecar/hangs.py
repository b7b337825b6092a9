"""Says that a job hangs while it hangs: what it waits for, and where all of its threads are.

A job hangs if no work is recorded, no process of it uses a CPU or waits for one, no data move and no GPU computes, for
longer than it ever did nothing before; two looks at its threads must then find the same wait. A first trace, a
compilation or a large import uses the CPU, so it is never one. Where a CPU is used and the job waits for a batch of its
input, it is called "busy": a filter that lets nothing through, a generator that yields nothing, or slow input.

Source of the limits: docs/decisions/0072-hangs-while-they-last.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from stepscope.causes.host import thread_waits
from stepscope.causes.job import purpose
from stepscope.derive.view import SessionView
from stepscope.model.event import Event
from stepscope.model.log.events import DatasetMade
from stepscope.model.log.program import RunWaits
from stepscope.native.waiting import look, work_meter
from stepscope.tables.hang import ChildEnded, Hang
from stepscope.tables.records import GpuTable, ProcessTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.causes.host.thread_waits import Root
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.live import Live
    from stepscope.tables.hang import HangThread

E = TypeVar("E", bound=Event)

LEAST_NS = 14_000_000_000
"""A shorter time of doing nothing is no hang."""
BUSY_LEAST_NS = 20_000_000_000
"""Least time without a step after which a job that waits for its input and computes is called busy."""
TIMES_BEFORE = 3.0
"""Least ratio of that time to the longest one before."""
TIMES_BUSY = 2.0
"""The same of the time without a step of a job that computes, to the longest time between two steps."""
MAX_CORES = 0.1
"""CPUs that a process that waits may use: polling loops, threads of the framework that wake up."""
MAX_BYTES = 64 << 10
"""Bytes that processes that wait may move in a second."""
_QUIET_NS = 3_000_000_000
"""Time without work from which the processes' CPU time is read."""
_LONG_QUIET_NS = 60_000_000_000
_SELDOM_NS = 5_000_000_000
"""Interval of reading it once the job has done nothing for a minute: a notebook may be idle for days."""
_BETWEEN_LOOKS_NS = 4_000_000_000
_BUSY_LOOKS = 3
"""Readings in a row in which something computes, after which a hang is over."""
_MOST_BETWEEN_NS = 600_000_000_000
"""Interval of looks at threads that wait for requests: it doubles from look to look."""
_BEFORE_NS = 60_000_000_000
"""Processes that ended this long before the last work, or since, may be the ones waited for."""
MAX_KEPT = 20
"""Hangs in the manifest; later ones are not kept."""
_ALWAYS = frozenset({"dataset", "framework", "network", "process"})
"""Waits that are no waits for requests, whatever the job does."""


class Hangs:
    """Watches one recording."""

    def __init__(self, recording: Recording, live: Live) -> None:
        """Nothing hangs."""
        self._recording = recording
        self._live = live
        self._meter = work_meter.WorkMeter()
        self._worked_ns = 0
        self._idle_since_ns = self._idle_ns = 0
        self._longest_idle_ns = 0
        self._computed_ns = self._busy_looks = 0
        self._looked_ns = self._next_ns = 0
        self._between_ns = _BETWEEN_LOOKS_NS
        self._seen: tuple[str, str, int] | None = None
        self._switches = 0
        self._hang: Hang | None = None

    def tick(self, now_ns: int, state: str) -> None:
        """Look; called about once a second."""
        workers = [worker for worker in self._recording.drainer.workers.values() if not worker.closed]
        started = [worker.info.started_ns + self._recording.manifest.origin_monotonic_ns for worker in workers]
        worked_ns = max([*(worker.recent.worked_ns for worker in workers), *started], default=0)
        if worked_ns > self._worked_ns:
            self._work(worked_ns)
        quiet_ns = now_ns - self._worked_ns
        if state != "running" or not workers or quiet_ns < _QUIET_NS:
            self._meter.forget()
            self._next_ns = 0
            return
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + (_SELDOM_NS if quiet_ns > _LONG_QUIET_NS else 0)
        self._watch(now_ns, max(worker.recent.longest_pause_ns for worker in workers))

    def _work(self, worked_ns: int) -> None:
        self._break(worked_ns)
        self._end(worked_ns)
        self._worked_ns = worked_ns
        self._computed_ns, self._seen, self._looked_ns, self._between_ns = 0, None, 0, _BETWEEN_LOOKS_NS

    def _break(self, now_ns: int) -> None:
        """A time of doing nothing ends, if there was one."""
        self._longest_idle_ns = max(self._longest_idle_ns, self._idle_ns)
        self._idle_since_ns, self._idle_ns = now_ns, 0

    def _watch(self, now_ns: int, longest_pause_ns: int) -> None:
        pids = self._pids()
        cores = self._meter.cores(now_ns, pids)
        if cores is None:
            return
        if cores > MAX_CORES or any(work_meter.state_of(pid) in {"T", "t"} for pid in pids[:1]):
            self._break(now_ns)
            self._computed_ns = now_ns if cores > MAX_CORES else self._computed_ns
            self._busy_looks += 1
            if self._hang is not None and self._hang.state == "hang" and self._busy_looks >= _BUSY_LOOKS:
                self._end(now_ns)
        else:
            self._busy_looks = 0
            self._idle_ns = now_ns - self._idle_since_ns
        idle, least = now_ns - self._idle_since_ns, max(LEAST_NS, int(TIMES_BEFORE * self._longest_idle_ns))
        computes = now_ns - self._computed_ns < _BETWEEN_LOOKS_NS
        over_ns = now_ns - self._worked_ns - max(BUSY_LEAST_NS, int(TIMES_BUSY * longest_pause_ns))
        hangs, busy = idle >= least, computes and over_ns >= 0
        early = idle >= least - _BETWEEN_LOOKS_NS or (computes and over_ns >= -_BETWEEN_LOOKS_NS)
        due = now_ns - self._looked_ns >= self._between_ns
        if early and due and (self._hang is None or (hangs and self._hang.state == "busy")):
            if not computes and self._moved(now_ns):  # a transfer: its time says nothing of times without any
                self._idle_since_ns, self._idle_ns = now_ns, 0
            else:
                self._look(now_ns, pids, hangs=hangs, busy=busy)

    def _pids(self) -> list[int]:
        """The job's processes, the one of the steps first."""
        children, _ = self._recording.sampling.children()
        job = self._recording.job
        measured = sorted(
            (worker for worker in self._recording.drainer.workers.values() if not worker.closed and worker.alive()),
            key=lambda worker: -worker.recent.records,
        )
        first = [worker.pid for worker in measured]
        return list(dict.fromkeys([*first, *([job.pid] if job else []), *sorted(children)]))

    def _moved(self, now_ns: int) -> bool:
        """Whether processes read, wrote or received data, or a GPU computed, while nothing else was done."""
        origin = self._recording.manifest.origin_monotonic_ns
        since, seconds = self._idle_since_ns - origin, (now_ns - self._idle_since_ns) / 1e9
        for gpus in self._recording.sampling.tables().get("gpus", []):
            if isinstance(gpus, GpuTable) and (gpus.busy_percent[gpus.at_ns > since] > 0).any():
                return True
        moved = 0
        tables = self._recording.sampling.processes()
        table = ProcessTable.concat(tables) if tables else ProcessTable.empty()
        table = table.take(table.at_ns > since)
        for pid in set(table.pid.tolist()):
            mine = table.take(table.pid == pid)
            for column in (mine.read_bytes, mine.write_bytes, mine.tcp_rx_bytes, mine.tcp_tx_bytes):
                known = column[column >= 0]
                moved += int(known[-1] - known[0]) if len(known) else 0
        return moved > MAX_BYTES * seconds

    def _look(self, now_ns: int, pids: list[int], *, hangs: bool, busy: bool) -> None:
        self._looked_ns = now_ns
        threads, problem = look.at_threads(pids)
        found = thread_waits.root(threads, self._ended(now_ns, pids), self._newest(RunWaits))
        if found is None:
            return
        wait = found.wait
        key = (wait.frame.file, wait.frame.function, wait.thread.tid)
        same, self._seen = key == self._seen, key
        polls, self._switches = wait.thread.switches > self._switches > 0, wait.thread.switches
        if not same or not (hangs or busy):
            self._between_ns = _BETWEEN_LOOKS_NS
            return
        self._between_ns = min(2 * self._between_ns, _MOST_BETWEEN_NS)
        if hangs:
            told = wait.kind != "running" and self._is_no_rest(found, polls=polls)
        else:
            told = found.main.kind in {"dataset", "framework"} and "dataset" in self._types()
        if told:
            self._tell(now_ns, found, threads, problem, state="hang" if hangs else "busy")

    def _newest(self, kind: type[E], where: Callable[[E], bool] = bool) -> E | None:
        """The newest log line of one kind; None if there is none."""
        workers = self._recording.drainer.workers.values()
        seen = [worker.recent.worker(worker.info) for worker in workers if not worker.closed]
        return next((event for worker in seen for event in reversed(worker.all(kind)) if where(event)), None)

    def _types(self) -> set[str]:
        return set().union(*(worker.types for worker in self._recording.drainer.workers.values()))

    def _is_no_rest(self, found: Root, *, polls: bool) -> bool:
        """Whether it waits for what should come by itself: not for requests, and not for a time."""
        kind = found.wait.kind
        if "work" in {kind, found.main.kind} or (kind == "sleep" and not polls):
            return False
        return kind in _ALWAYS or found.main.kind in _ALWAYS or self._trains()

    def _trains(self) -> bool:
        return bool(SessionView(self._live.session()).get(purpose.trains))

    def _ended(self, now_ns: int, pids: list[int]) -> list[ChildEnded]:
        """Processes of the job that ended shortly before the last work, or since."""
        _, gone = self._recording.sampling.children()
        origin = self._recording.manifest.origin_monotonic_ns
        found = [ChildEnded(pid=pid, at_ns=at - origin) for at, pid in gone if at >= self._worked_ns - _BEFORE_NS]
        dead = [(pid, work_meter.how_it_ended(pid)) for pid in pids]
        return [*found, *(ChildEnded(pid=pid, at_ns=now_ns - origin, how=how) for pid, how in dead if how)]

    def _tell(self, now_ns: int, found: Root, threads: tuple[HangThread, ...], problem: str, *, state: str) -> None:
        origin = self._recording.manifest.origin_monotonic_ns
        wait, main = found.wait, found.main
        kind = thread_waits.KINDS.get(wait.kind, wait.kind)
        text = found.text
        if state == "busy":
            kind = "dataset"
            computes = f"{wait.frame.function} computes" if wait.kind == "running" else self._filter() or text
            text = f"no batch comes, and the input computes: {computes}"
        self._end(now_ns)
        self._hang = Hang(
            kind=kind,
            state=state,
            text=text,
            pid=wait.thread.pid,
            file=wait.frame.file,
            line=wait.frame.line,
            function=wait.frame.function,
            main=main.frame if main.frame != wait.frame else None,
            since_ns=max(0, self._worked_ns - origin),
            told_ns=now_ns - origin,
            threads=threads,
            problem=problem,
        )
        self._keep(self._hang)

    def _filter(self) -> str:
        """The newest filter of the program's datasets, which may let nothing through."""
        made = self._newest(DatasetMade, lambda made: "Filter" in made.cls)
        return f"the filter at {made.file.rpartition('/')[2]}:{made.line} may let nothing through" if made else ""

    def _end(self, now_ns: int) -> None:
        """There is work again."""
        if self._hang is None:
            return
        ended = msgspec.structs.replace(self._hang, until_ns=now_ns - self._recording.manifest.origin_monotonic_ns)
        self._hang = None
        self._keep(ended)

    def _keep(self, hang: Hang) -> None:
        self._recording.keep_hang(hang, MAX_KEPT)
        self._live.show_hang(hang if not hang.until_ns else None)
