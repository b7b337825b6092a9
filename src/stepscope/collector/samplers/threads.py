"""Samples the threads of measured processes: time on a CPU, time waiting for one, states, context switches.

Source: /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst: run ns, wait ns, timeslices), and
/proc/PID/task/TID/status, often for the threads that work and occasionally for those that only wake up.
"""

from __future__ import annotations

import os

from msgspec import Struct

from stepscope.collector.samplers.base import ProcFile, Rows
from stepscope.tables.records import ThreadTable

_MAX_OPEN = 800
"""Number of files kept open by this sampler; the rest of a huge process are opened at each look."""
_ACTIVE_NS = 20_000_000
"""Time of running or waiting for a CPU since the last look from which a thread is examined closely."""
_STATES_EVERY = 5
"""Interval in looks of reading the states of all threads that woke up: 20 us each."""
_STATUS_EVERY = 10
"""Interval in looks of reading the others' context switches: ``status`` costs ten times ``schedstat``."""


class ThreadTotals(Struct):
    """Sums over the threads of a process, including those that have ended. Nanoseconds and counts."""

    run_ns: int = 0
    wait_ns: int = 0
    threads: int = 0
    running: int = 0
    blocked: int = -1
    """Number of blocked threads; -1: not examined."""
    voluntary: int = 0
    involuntary: int = 0


class _Thread:
    __slots__ = ("age", "file", "involuntary", "path", "run_ns", "voluntary", "wait_ns")

    def __init__(self, path: str, file: ProcFile | None) -> None:
        self.path = path
        self.file = file
        self.run_ns = self.wait_ns = -1
        self.voluntary = self.involuntary = 0
        self.age = 0

    def schedstat(self) -> list[bytes]:
        if self.file is not None:
            return self.file.read().split()
        file = ProcFile(self.path + "/schedstat")
        try:
            return file.read().split()
        finally:
            file.close()


class ThreadSampler:
    """Follows all threads of the measured processes."""

    def __init__(self, origin_ns: int) -> None:
        """Times in rows count from ``origin_ns``."""
        self.rows = Rows(ThreadTable)
        self._origin_ns = origin_ns
        self._threads: dict[int, dict[int, _Thread]] = {}
        self._gone: dict[int, ThreadTotals] = {}
        self._open = 0
        self._looks = 0

    def sample(self, now_ns: int, pids: frozenset[int]) -> dict[int, ThreadTotals]:
        """Examine every thread and add a row for each one that has run since the last look. Return totals by
        process.
        """
        for pid in [p for p in self._threads if p not in pids]:
            for thread in self._threads.pop(pid).values():
                self._close(thread)
            del self._gone[pid]
        self._looks += 1
        return {pid: self._sample_process(now_ns - self._origin_ns, pid) for pid in pids}

    def _sample_process(self, at_ns: int, pid: int) -> ThreadTotals:
        known = self._threads.setdefault(pid, {})
        gone = self._gone.setdefault(pid, ThreadTotals())
        totals = ThreadTotals(blocked=-1 if self._looks % _STATES_EVERY else 0)
        try:
            present = {int(name) for name in os.listdir(f"/proc/{pid}/task")}
        except OSError:
            present = set()
        for native in present - known.keys():
            known[native] = self._opened(f"/proc/{pid}/task/{native}")
        for native, thread in list(known.items()):
            if native not in present:
                self._retire(known.pop(native), gone)
                continue
            self._sample_thread(at_ns, pid, native, thread, totals)
        totals.threads = len(present)
        totals.run_ns += gone.run_ns
        totals.wait_ns += gone.wait_ns
        totals.voluntary += gone.voluntary
        totals.involuntary += gone.involuntary
        return totals

    def _sample_thread(self, at_ns: int, pid: int, native: int, thread: _Thread, totals: ThreadTotals) -> None:
        values = thread.schedstat()
        if len(values) > 1:
            run_ns, wait_ns = int(values[0]), int(values[1])
            if run_ns != thread.run_ns or wait_ns != thread.wait_ns:
                active = run_ns + wait_ns - thread.run_ns - thread.wait_ns >= _ACTIVE_NS
                thread.run_ns, thread.wait_ns = run_ns, wait_ns
                self.rows.add(at_ns, pid, native, run_ns, wait_ns)
                thread.age += 1
                if active or thread.age % _STATUS_EVERY == 0:
                    state = self._read_status(thread)
                    totals.running += state == b"R"
                else:
                    state = read_state(thread.path) if totals.blocked >= 0 else b""
                if totals.blocked >= 0:
                    totals.blocked += state == b"D"
        totals.run_ns += max(0, thread.run_ns)
        totals.wait_ns += max(0, thread.wait_ns)
        totals.voluntary += thread.voluntary
        totals.involuntary += thread.involuntary

    @staticmethod
    def _read_status(thread: _Thread) -> bytes:
        """Update a thread's switches; return its state, one letter."""
        file = ProcFile(thread.path + "/status")
        text = file.read()
        file.close()
        at = text.find(b"\nvoluntary_ctxt_switches:")
        if at >= 0:
            words = text[at:].split()
            thread.voluntary, thread.involuntary = int(words[1]), int(words[3])
        at = text.find(b"\nState:\t")
        return text[at + 8 : at + 9] if at >= 0 else b""

    def _opened(self, path: str) -> _Thread:
        if self._open >= _MAX_OPEN:
            return _Thread(path, None)
        self._open += 1
        return _Thread(path, ProcFile(path + "/schedstat"))

    def _retire(self, thread: _Thread, gone: ThreadTotals) -> None:
        gone.run_ns += max(0, thread.run_ns)
        gone.wait_ns += max(0, thread.wait_ns)
        gone.voluntary += thread.voluntary
        gone.involuntary += thread.involuntary
        self._close(thread)

    def _close(self, thread: _Thread) -> None:
        if thread.file is not None:
            thread.file.close()
            self._open -= 1


def read_state(path: str) -> bytes:
    """The state of a thread that woke up since the last look, one letter; empty if it has gone."""
    file = ProcFile(path + "/stat")
    text = file.read()
    file.close()
    at = text.rfind(b")")
    return text[at + 2 : at + 3] if at >= 0 else b""
