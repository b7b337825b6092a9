"""Samples the other processes of the host: which of them use the CPU, and whether the job started them, or whatever
started the job (they share its process group).

Of those that the job started it also says how many of their threads could run at the moment: more than one in each
worker of a loader, where workers take all CPUs, is a library that starts more.

All processes are listed once a second; their CPU time is one system call each (``host.cpu_clock``), and /proc/PID is
read only when a process is seen for the first time. Kernel threads are ignored after that first look.
"""

from __future__ import annotations

import os
from collections import deque

from msgspec import Struct

from stepscope.collector.samplers.base import ProcFile, Rows, Targets
from stepscope.collector.samplers.cluster import ClusterTasks
from stepscope.collector.samplers.host import cpu_clock
from stepscope.launcher.mask import mask_command
from stepscope.tables.records import CHILD, GROUP, TASK, RivalTable

_KEEP = 8
"""Rows per second: the largest users of CPU."""
_MIN_CPU_NS = 5_000_000
"""CPU time below which a process is not a rival: half a percent of a core."""
_KERNEL_PARENT = 2
_MOST_PARENTS = 4
"""Generations between the collector and what it started."""
_MOST_THREADS = 128
"""Threads of the job's processes looked at in a second, 20 us each: of a process with more it is not known."""
_MAX_NAME = 160
_MAX_NUMBERS = 4_096
_MAX_RECENT_NAMES = 512
_MAX_ENDED = 64


class _Other(Struct):
    cpu_ns: int
    parent: int
    group: int
    name: int = -1
    kernel: bool = False


class RivalSampler:
    """Follows all processes that are neither measured nor ours."""

    def __init__(self, origin_ns: int, first_name: int = 0) -> None:
        """Times in rows count from ``origin_ns``, names from ``first_name``."""
        self.rows = Rows(RivalTable)
        self.names: list[str] = []
        """Names not stored yet; the first has number ``first_name``."""
        self.first_name = first_name
        self.recent_names: dict[int, str] = {}
        """Texts of the newest stored names, by number."""
        self._origin_ns = origin_ns
        self._others: dict[int, _Other] = {}
        self._numbers: dict[tuple[int, str], int] = {}
        self._descendants: set[int] = set()
        self._companions: set[int] = set()
        """Others of the job's process group, and what these started."""
        self.ended_children: deque[tuple[int, int]] = deque(maxlen=_MAX_ENDED)
        """(time of CLOCK_MONOTONIC, pid) of the newest descendants of the job that have gone."""
        self._job_group = 0
        self._last_ns = 0
        self._cluster = ClusterTasks()

    @property
    def children(self) -> frozenset[int]:
        """The living descendants of the job, without others of its process group."""
        return frozenset(self._descendants)

    def sample(self, now_ns: int, targets: Targets) -> None:
        """Rows for the largest users of CPU since the last look."""
        interval = now_ns - self._last_ns if self._last_ns else 0
        self._last_ns = now_ns
        met = bool(self._job_group)
        if targets.job_pid and not met:
            described = _describe(targets.job_pid)
            self._job_group = described.group if described else 0
        present = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        used: list[tuple[int, int]] = []
        new: list[int] = []
        for pid in present:
            other = self._others.get(pid)
            if other is None:
                new.append(pid)
            elif not other.kernel and pid not in targets.measured and pid not in targets.own:
                self._add_use(pid, other, used, new)
        for pid in new:
            self._meet(pid, used if interval else [])
        self._forget_gone(present, now_ns)
        if targets.job_pid:  # else all come from process 0
            self._find_children(new if met else list(self._others), targets)
        if interval:
            self._add_rows(now_ns, interval, sorted(used, reverse=True)[:_KEEP], targets)

    def _add_rows(self, now_ns: int, interval: int, used: list[tuple[int, int]], targets: Targets) -> None:
        """Rows for these processes, given as (CPU time, pid)."""
        left = _MOST_THREADS
        for cpu_ns, pid in used:
            if pid not in targets.measured and pid not in targets.own and not self._is_ours(pid, targets):
                child = CHILD if pid in self._descendants else GROUP if pid in self._companions else 0
                child |= TASK if self._cluster.has(pid, targets.measured) else 0
                runnable = -1
                if child & CHILD:
                    runnable, looked = _runnable(pid, left)
                    left -= looked
                at_ns = now_ns - self._origin_ns
                self.rows.add(at_ns, pid, self._name_of(pid), child, cpu_ns, interval, runnable)

    def _is_ours(self, pid: int, targets: Targets) -> bool:
        """Whether the collector started a process, such as perf for a window of native stacks."""
        me, at = os.getpid(), pid
        for _ in range(_MOST_PARENTS if me in targets.own else 0):
            parent = self._others[at].parent if at in self._others else 0
            if parent == me:
                return True
            at = parent
        return False

    def _add_use(self, pid: int, other: _Other, used: list[tuple[int, int]], new: list[int]) -> None:
        now = cpu_clock(pid)
        use = now - other.cpu_ns
        if use < 0:  # the pid now belongs to another process
            new.append(pid)
            self._descendants.discard(pid)
            self._companions.discard(pid)
            self._cluster.forget(pid)
            return
        other.cpu_ns = now
        if use >= _MIN_CPU_NS:
            used.append((use, pid))

    def _meet(self, pid: int, used: list[tuple[int, int]]) -> None:
        """Examine a new process; its use so far counts if it began since the last look."""
        other = _describe(pid)
        if other is None:
            return
        self._others[pid] = other
        if other.cpu_ns >= _MIN_CPU_NS and not other.kernel:
            used.append((other.cpu_ns, pid))

    def _forget_gone(self, present: list[int], now_ns: int) -> None:
        if len(self._others) > len(present):
            alive = set(present)
            for pid in [p for p in self._others if p not in alive]:
                del self._others[pid]
                if pid in self._descendants:
                    self._descendants.discard(pid)
                    self.ended_children.append((now_ns, pid))
                self._companions.discard(pid)
                self._cluster.forget(pid)

    def _find_children(self, new: list[int], targets: Targets) -> None:
        """Mark new processes that descend from the job, or are of its group; a mark remains when the parent ends."""
        known = {targets.job_pid, *self._descendants, *self._companions}
        for pid in new:
            seen = []
            at: int = pid
            while at in self._others and at not in seen and at not in known:
                seen.append(at)
                at = self._others[at].parent
            other = self._others.get(pid)
            if at == targets.job_pid or at in self._descendants:
                found = self._descendants
            elif at in self._companions:
                found = self._companions
            elif other is not None and self._job_group and other.group == self._job_group and pid not in targets.own:
                found, seen = self._companions, [pid]
            else:
                continue
            found.update(seen)
            known.update(seen)

    def _name_of(self, pid: int) -> int:
        other = self._others[pid]
        if other.name < 0:
            text = _command(pid)
            key = (pid, text)
            if len(self._numbers) >= _MAX_NUMBERS:  # a host that starts processes for weeks
                self._numbers.clear()
            if key not in self._numbers:
                self._numbers[key] = self.first_name + len(self.names)
                self.names.append(text)
            other.name = self._numbers[key]
        return other.name

    def names_stored(self) -> None:
        """Drop the texts of names that are now durable, except the newest."""
        for number, text in enumerate(self.names, self.first_name):
            self.recent_names[number] = text
        for number in list(self.recent_names)[:-_MAX_RECENT_NAMES]:
            del self.recent_names[number]
        self.first_name += len(self.names)
        self.names.clear()


def _describe(pid: int) -> _Other | None:
    file = ProcFile(f"/proc/{pid}/stat")
    stat = file.read()
    file.close()
    values = stat[stat.rfind(b")") + 2 :].split()
    if len(values) < 3:  # noqa: PLR2004 - state, parent, group
        return None
    parent = int(values[1])
    return _Other(
        cpu_ns=max(0, cpu_clock(pid)),
        parent=parent,
        group=int(values[2]),
        kernel=_KERNEL_PARENT in (parent, pid),
    )


def _runnable(pid: int, most: int) -> tuple[int, int]:
    """Threads of a process that run or are ready to, and how many were looked at.

    (-1, 0) of a process that has gone, or has more than ``most``.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return -1, 0
    if not threads or len(threads) > most:
        return -1, 0
    found = 0
    for thread in threads:
        file = ProcFile(f"/proc/{pid}/task/{thread}/stat")
        stat = file.read()
        file.close()
        found += stat[stat.rfind(b")") + 2 :][:1] == b"R"
    return found, len(threads)


def _command(pid: int) -> str:
    """The command line of a process for people: masked and short; its name in brackets if it has none."""
    file = ProcFile(f"/proc/{pid}/cmdline")
    words = file.read().rstrip(b"\0").decode("utf-8", "replace").split("\0")
    file.close()
    text = " ".join(mask_command(words)).strip()
    if not text:
        file = ProcFile(f"/proc/{pid}/comm")
        text = f"[{file.read().decode('utf-8', 'replace').strip()}]"
        file.close()
    text = " ".join(text.split())
    return text if len(text) <= _MAX_NAME else text[: _MAX_NAME - 1] + "…"
