"""Samples memory: the host's, and that of the job's cgroup with its limit.

Source: /proc/meminfo as read by the host sampler; cgroup v2 ``memory.current``, ``memory.max``, ``memory.stat``, v1
``memory.usage_in_bytes``, ``memory.limit_in_bytes``, ``memory.stat``. The process sampler covers each process's memory.
Occasionally also the cost of a page fault (``fault_cost``), and from /proc/vmstat how many of all faults were served
with huge pages: no file has that for one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.samplers.base import ProcFile, Rows, Targets
from stepscope.collector.samplers.fault_cost import FaultProbe, FaultRound
from stepscope.native.cgroups import cgroup
from stepscope.tables.records import MemoryTable

if TYPE_CHECKING:
    from pathlib import Path

_LIMITS_EVERY = 10
_NOT_LOOKED = FaultRound(fault_ns=-1, release_ns=-1)


class MemorySampler:
    """Follows memory."""

    def __init__(self, origin_ns: int) -> None:
        """Times in rows count from ``origin_ns``."""
        self.rows = Rows(MemoryTable)
        self._origin_ns = origin_ns
        self._folders: list[Path] | None = None
        self._folder: Path | None = None
        self._usage: ProcFile | None = None
        self._limit = -1
        self._cache = -1
        self._looks = 0
        self._faults = FaultProbe()
        self._vmstat = ProcFile("/proc/vmstat")

    def sample(self, now_ns: int, text: bytes, targets: Targets) -> None:
        """One row; ``text`` is /proc/meminfo."""
        if self._folders is None and targets.job_pid:
            self._folders = cgroup.folders(targets.job_pid, "memory")
        if self._folders and self._looks % _LIMITS_EVERY == 0:
            self._refresh(self._folders)
        self._looks += 1
        used = self._usage.read().strip() if self._usage else b""
        swap, free = _bytes(text, b"SwapTotal:"), _bytes(text, b"SwapFree:")
        cost = self._faults.look() or _NOT_LOOKED
        huge = self._vmstat.read().partition(b"\nthp_fault_alloc ")[2].split(None, 1)
        self.rows.add(
            now_ns - self._origin_ns,
            _bytes(text, b"MemTotal:"),
            _bytes(text, b"MemAvailable:"),
            swap - free if swap >= 0 and free >= 0 else -1,
            int(used) if used.isdigit() else -1,
            self._limit,
            self._cache,
            cost.fault_ns,
            cost.release_ns,
            int(huge[0]) if huge else -1,
            cost.huge_fault_ns,
            cost.huge_release_ns,
        )

    def _refresh(self, folders: list[Path]) -> None:
        """The tightest limit of the group and its ancestors, and the page cache in it."""
        limits = [(limit, folder) for folder in folders if (limit := cgroup.memory_limit(folder)) > 0]
        self._limit, folder = min(limits, default=(-1, folders[0]))
        if folder != self._folder:
            if self._usage is not None:
                self._usage.close()
            name = "memory.current" if (folder / "memory.current").exists() else "memory.usage_in_bytes"
            self._usage = ProcFile(str(folder / name))
            self._folder = folder
        words = cgroup.read(folder / "memory.stat").split()
        name = "total_cache" if "total_cache" in words else "file"
        self._cache = int(words[words.index(name) + 1]) if name in words else -1


def _bytes(text: bytes, name: bytes) -> int:
    start = text.find(name)
    return int(text[start:].split(None, 2)[1]) * 1024 if start >= 0 else -1
