"""Has processes without a framework sampled, once they have lived for some seconds and compute.

The job's Python processes listen to a signal (``agent.bootstrap.listen``) that does nothing where no handler is. Only
those get it that are found computing, or waiting for a lock: a signal ends other waits of the main thread early, which
not every library expects. So launchers that wait for their children, servers of forks and trackers of resources are
left alone, as is what ends within seconds. A look at a process costs the collector a few small files of /proc.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector.samplers.base import TICK_NS
from stepscope.native import process_stat
from stepscope.wire.commands import COMMANDS_NAME
from stepscope.wire.env import PROCS_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_NS = 5_000_000_000
"""A process that lives for less is left as it is."""
MOST = 10
"""Signals to one process: the first has it measured, the next has it sampled."""
_HELPERS = frozenset({"pip", "uv", "conda"})
"""Modules whose work is none of the job's."""
_LISTENS = 1 << (signal.SIGURG - 1)


class Waking:
    """Follows the job's processes that are not sampled."""

    def __init__(self, run: Path) -> None:
        """No process is known."""
        self._procs = run / PROCS_NAME
        self._variable = f"STEPSCOPE_RUN={run}".encode()
        self._sent: dict[int, int] = {}

    def look(self, pids: Iterable[int]) -> None:
        """Wake those of ``pids``, the job's processes, that are due and have no thread of the agent."""
        sampled = {folder.parent.name.partition("-")[0] for folder in self._procs.glob(f"*/{COMMANDS_NAME}")}
        self._sent = {pid: self._sent.get(pid, 0) for pid in pids if str(pid) not in sampled}
        for pid, sent in self._sent.items():
            if sent < MOST and _age_ns(pid) >= LEAST_NS and _may_be_woken(pid) and self._is_ours(pid):
                self._sent[pid] += 1
                try:
                    os.kill(pid, signal.SIGURG)
                except OSError:  # it has just ended, or is another user's
                    continue

    def sent(self, pid: int) -> int:
        """How many signals a process has got."""
        return self._sent.get(pid, 0)

    def _is_ours(self, pid: int) -> bool:
        """Whether it is a Python that this run has armed, and does the job's work."""
        try:
            armed = self._variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return armed and "python" in words[0].decode("utf-8", "replace") and _module(words) not in _HELPERS


def _age_ns(pid: int) -> int:
    """Time since the process was started; 0 if it has gone."""
    started = process_stat.start_ticks(pid)
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started * TICK_NS if started else 0


def _module(words: list[bytes]) -> str:
    """The module that ``python -m`` runs; "" for a script."""
    return b"".join(words[2:3]).decode("utf-8", "replace") if words[1:2] == [b"-m"] else ""


def _may_be_woken(pid: int) -> bool:
    """Whether its main thread computes or waits for a lock, and listens."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
        waits = Path(f"/proc/{pid}/wchan").read_text("utf-8", "replace")
    except OSError:
        return False
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    busy = fields.get("State", "").startswith("R") or waits.startswith("futex")
    return busy and bool(int(fields.get("SigCgt", "0"), 16) & _LISTENS)
