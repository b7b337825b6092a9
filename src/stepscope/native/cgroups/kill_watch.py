"""Whether the job was killed for lack of memory, from counters of such kills and from the kernel's log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from stepscope.native.cgroups import cgroup, memory_kills
from stepscope.native.kernel import kernel_log

LATE_NS = 10_000_000_000
"""A process that is killed for lack of memory ends at once, a very large one within seconds: a kill longer before the
job's end did not end it."""

Basis = Literal["", "log", "group", "host"]


class KillWatch:
    """Follows the counters while the job runs."""

    def __init__(self, before: Mapping[str, int], since_ns: int, host: Path = cgroup.HOST) -> None:
        """``before``: counters at ``since_ns``, when the job began."""
        self._last = dict(before)
        self._since_ns = since_ns
        self._host = host
        self._host_file = memory_kills.host_file(host)
        self._first = frozenset(before) - {self._host_file}
        self._groups: set[str] = set()
        self._pids: set[int] = set()
        self._risen: dict[str, int] = {}

    def look(self, now_ns: int, pids: Collection[int]) -> None:
        """Read the counters, also those of the groups of new processes."""
        for pid in set(pids) - self._pids:
            for file, kills in memory_kills.counters(pid, self._host).items():
                self._last.setdefault(file, kills)
                self._groups |= {file} - {self._host_file}
        self._pids |= set(pids)
        for file, kills in self._last.items():
            now = memory_kills.count(file)
            if now is not None and now > kills:
                self._risen[file] = now_ns
                self._last[file] = now

    def basis(self, ended_ns: int, pids: Collection[int], *, counted: bool = True) -> Basis:
        """What says that one of ``pids`` was killed for lack of memory, or may have been: the kernel's log, the counter
        of their control group, or the host's where the group has none. "": nothing does.

        ``counted``: the counters were followed until the end.
        """
        if self._last and not self._risen:
            return ""
        log = kernel_log.killed(self._since_ns)
        if log.pids & set(pids):
            return "log"
        if log.whole or not counted:
            return ""
        late = {file for file, at in self._risen.items() if ended_ns - at <= LATE_NS}
        if groups := self._groups or self._first:
            return "group" if late & groups else ""
        return "host" if self._host_file in late else ""
