"""Whether processes compute: CPU time, and time for which they waited for a CPU.

Both count, because a job that is starved does not hang; but threads that only wake up now and then wait for a CPU, too,
where others take it: waiting counts for a thread that does nothing else. Source: /proc/PID/task/TID/schedstat
(Documentation/scheduler/sched-stats.rst: run ns, wait ns, timeslices).
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native import process_stat

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PROCESSES = 64
RUNNABLE = 0.8
"""Share of the time from which a thread that waits for a CPU computes: one that only wakes up now and then sleeps."""


class WorkMeter:
    """Follows the threads of some processes while it is asked."""

    def __init__(self) -> None:
        """Nothing has been read."""
        self._at_ns = 0
        self._last: dict[int, dict[str, tuple[int, int]]] = {}

    def forget(self) -> None:
        """Begin again: what happened until the next reading does not count."""
        self._last.clear()

    def cores(self, now_ns: int, pids: Iterable[int]) -> float | None:
        """CPUs that the busiest process has used, or waited for, since the last reading; None at the first."""
        now = {pid: _times(pid) for pid in list(pids)[:MAX_PROCESSES]}
        elapsed = now_ns - self._at_ns
        known = [_used_ns(self._last[pid], threads, elapsed) for pid, threads in now.items() if pid in self._last]
        self._last, self._at_ns = now, now_ns
        return max(known) / elapsed if known and elapsed > 0 else None


def _used_ns(before: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]], elapsed: int) -> int:
    total = 0
    for task, times in now.items():
        ran, waited = (have - had for have, had in zip(times, before.get(task, (0, 0)), strict=True))
        total += ran + (waited if ran + waited >= RUNNABLE * elapsed else 0)
    return total


def _times(pid: int) -> dict[str, tuple[int, int]]:
    """Time on a CPU, and time waiting for one, of each thread, in ns."""
    found = {}
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return {}
    for task in tasks:
        try:
            words = Path(f"/proc/{pid}/task/{task}/schedstat").read_bytes().split()
        except OSError:  # it has just ended
            continue
        if len(words) > 1:
            found[task] = (int(words[0]), int(words[1]))
    return found


def state_of(pid: int) -> str:
    """Letter of a process's state; "" if it has gone."""
    return (_stat(pid) or [""])[0]


def how_it_ended(pid: int) -> str:
    """How a process ended whose parent has not asked for it yet ("killed by SIGKILL"); "" for any other."""
    code = process_stat.exit_status(pid)
    if code is None:
        return ""
    if not code & 0x7F:
        return f"exit code {code >> 8}"
    try:
        return f"killed by {signal.Signals(code & 0x7F).name}"
    except ValueError:
        return f"killed by signal {code & 0x7F}"


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
