"""Whether processes compute: CPU time, and time for which they waited for a CPU.

Both count, because a job that is starved does not hang; but threads that only wake up now and then wait for a CPU, too,
where others take it, so waiting counts less. Source: /proc/PID/task/TID/schedstat
(Documentation/scheduler/sched-stats.rst: run ns, wait ns, timeslices).
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PROCESSES = 64
WAITING = 0.2
"""Weight of the time for which a thread waited for a CPU: a thread that computes and gets none waits all the time."""
_EXIT_CODE = 49
"""Position in /proc/PID/stat after the command's closing bracket (field number minus 3)."""


class WorkMeter:
    """Follows some processes while it is asked."""

    def __init__(self) -> None:
        """Nothing has been read."""
        self._last: dict[int, tuple[int, float]] = {}

    def forget(self) -> None:
        """Begin again: what happened until the next reading does not count."""
        self._last.clear()

    def cores(self, now_ns: int, pids: Iterable[int]) -> float | None:
        """CPUs that the busiest process has used, or waited for, since the last reading; None at the first."""
        most = None
        now = {pid: (now_ns, _used_ns(pid)) for pid in list(pids)[:MAX_PROCESSES]}
        for pid, (at, used) in now.items():
            before = self._last.get(pid)
            if before is not None and at > before[0]:
                most = max(most or 0.0, (used - before[1]) / (at - before[0]))
        self._last = now
        return most


def _used_ns(pid: int) -> float:
    total = 0.0
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0
    for task in tasks:
        try:
            words = Path(f"/proc/{pid}/task/{task}/schedstat").read_bytes().split()
        except OSError:  # it has just ended
            continue
        total += int(words[0]) + WAITING * int(words[1]) if len(words) > 1 else 0
    return total


def state_of(pid: int) -> str:
    """Letter of a process's state; "" if it has gone."""
    return (_stat(pid) or [""])[0]


def how_it_ended(pid: int) -> str:
    """How a process ended whose parent has not asked for it yet ("killed by SIGKILL"); "" for any other."""
    words = _stat(pid)
    if len(words) <= _EXIT_CODE or words[0] != "Z":
        return ""
    code = int(words[_EXIT_CODE])
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
