"""Samples the host as the job sees it: its CPUs and their quota, pressure, network, disks, memory.

Sources: /proc/stat, /proc/pressure (Documentation/accounting/psi.rst), cgroup v2 ``cpu.max`` and ``cpu.stat``, cgroup
v1 ``cpu.cfs_quota_us`` and ``cpu.stat``, /proc/net/dev, /proc/diskstats, /proc/meminfo. What is missing is -1.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from stepscope.collector.samplers.base import TICK_NS, ProcFile, Rows, Targets
from stepscope.native.cgroups import cgroup
from stepscope.tables.records import HostTable

_SECTOR_BYTES = 512
_QUOTA_EVERY = 5
"""Interval in samples of reading quota and affinity, which rarely change."""


def cpu_clock(pid: int) -> int:
    """CPU time of a whole process, its ended threads included, in nanoseconds; -1 if there is none.

    Source: clock_getcpuclockid(3); the id of a process's clock is ``~pid << 3 | CPUCLOCK_SCHED``.
    Cost: one system call, about 1 us; /proc/PID/stat costs ten times that and counts in ticks.
    """
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError:
        return -1


class GroupCpu:
    """CPU time of a changing set of processes, as a total that never falls."""

    def __init__(self, total_ns: int = 0) -> None:
        """Continue from ``total_ns``: if that is not 0, it includes what the processes have used so far."""
        self.total_ns = total_ns
        self._last: dict[int, int] = {}
        self._skip_first = total_ns > 0

    def add(self, pids: frozenset[int]) -> int:
        """The total, with the use of ``pids`` since the last call; a new process counts from its start."""
        now = {pid: value for pid in pids if (value := cpu_clock(pid)) >= 0}
        if not self._skip_first:
            for pid, value in now.items():
                self.total_ns += max(0, value - self._last.get(pid, 0))
        self._skip_first = False
        self._last = now
        return self.total_ns


class HostSampler:
    """Follows the host."""

    def __init__(self, origin_ns: int, resume: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Follow the host. Times in rows count from ``origin_ns``; ``resume`` are totals to continue from: job, others,
        own.
        """
        self.rows = Rows(HostTable)
        self._origin_ns = origin_ns
        self._job = GroupCpu(resume[0])
        self._others_ns = resume[1]
        self._own = GroupCpu(resume[2])
        self._last: tuple[int, int, int] | None = None
        self._stat = ProcFile("/proc/stat")
        self.stat_text = self.net_text = self.disk_text = self.memory_text = b""
        """Texts of the last sample's files, which other samplers reuse."""
        self._pressure = [ProcFile(f"/proc/pressure/{what}") for what in ("cpu", "io", "memory")]
        self._net = ProcFile("/proc/net/dev")
        self._disks = ProcFile("/proc/diskstats")
        self._whole_disks = frozenset(whole_disks())
        self._memory = ProcFile("/proc/meminfo")
        self._cgroup: _CpuGroup | None = None
        self._affinity: frozenset[int] = frozenset()
        self._samples = 0

    @property
    def affinity(self) -> frozenset[int]:
        """CPUs that the job may use, as of the last sample."""
        return self._affinity

    def sample(self, now_ns: int, targets: Targets) -> None:
        """One row."""
        if self._cgroup is None and targets.job_pid:
            self._cgroup = _CpuGroup(targets.job_pid)
        if self._samples % _QUOTA_EVERY == 0 or not self._affinity:
            self._affinity = _affinity(targets.job_pid)
            if self._cgroup is not None:
                self._cgroup.refresh()
        self._samples += 1
        quota = self._cgroup.quota_milli if self._cgroup else -1
        self.stat_text = self._stat.read_all()
        self.net_text = self._net.read_all()
        self.disk_text = self._disks.read_all()
        self.memory_text = self._memory.read()
        busy, idle, iowait, steal = self._times()
        job_ns = self._job.add(targets.measured)
        own_ns = self._own.add(targets.own)
        self._add_others(busy, job_ns, own_ns)
        self.rows.add(
            now_ns - self._origin_ns,
            len(self._affinity),
            quota,
            busy,
            idle,
            iowait,
            steal,
            job_ns,
            self._others_ns,
            own_ns,
            self._cgroup.throttled_ns() if self._cgroup else -1,
            *(_pressure_ns(file.read()) for file in self._pressure),
            *_network_bytes(self.net_text),
            *self._disk_bytes(),
            _available_bytes(self.memory_text),
        )

    def _times(self) -> tuple[int, int, int, int]:
        """Busy, idle, iowait and steal time of the job's CPUs together."""
        busy = idle = iowait = steal = 0
        seen = False
        for line in self.stat_text.split(b"\n"):
            if not line.startswith(b"cpu"):
                if seen:
                    break
                continue
            number = line[3 : line.find(b" ")]
            if not number or int(number) not in self._affinity:
                continue
            seen = True
            values = [int(v) * TICK_NS for v in line.split()[1:9]]
            values += [0] * (8 - len(values))
            busy += values[0] + values[1] + values[2] + values[5] + values[6]
            idle += values[3]
            iowait += values[4]
            steal += values[7]
        return (busy, idle, iowait, steal) if seen else (-1, -1, -1, -1)

    def _add_others(self, busy: int, job_ns: int, own_ns: int) -> None:
        """Add the work of the job's CPUs for neither the job nor us, including processes that we cannot see."""
        if self._last is not None and busy >= 0:
            was_busy, was_job, was_own = self._last
            self._others_ns += max(0, (busy - was_busy) - (job_ns - was_job) - (own_ns - was_own))
        self._last = (busy, job_ns, own_ns)

    def _disk_bytes(self) -> tuple[int, int]:
        if not self.disk_text:
            return -1, -1
        read = written = 0
        for line in self.disk_text.split(b"\n"):
            words = line.split()
            if len(words) > 9 and words[2].decode("ascii", "replace") in self._whole_disks:  # noqa: PLR2004
                read += int(words[5])
                written += int(words[9])
        return read * _SECTOR_BYTES, written * _SECTOR_BYTES


def whole_disks() -> list[str]:
    """Physical disks: the traffic of a loop device, RAID or device mapper also counts on another one."""
    try:
        return [n for n in os.listdir("/sys/block") if not n.startswith(("loop", "ram", "zram", "dm-", "md"))]
    except OSError:
        return []


def _affinity(pid: int) -> frozenset[int]:
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return frozenset(os.sched_getaffinity(0))


def _pressure_ns(text: bytes) -> int:
    """The total of a pressure file's "some" line, which is in microseconds."""
    start = text.find(b"total=")
    end = text.find(b"\n", start)
    return int(text[start + 6 : end]) * 1000 if 0 <= start < end else -1


def _network_bytes(text: bytes) -> tuple[int, int]:
    """Bytes received and sent by all interfaces but the loopback."""
    if not text:
        return -1, -1
    received = sent = 0
    for line in text.split(b"\n")[2:]:
        name, colon, rest = line.partition(b":")
        words = rest.split()
        if colon and name.strip() != b"lo" and len(words) > 8:  # noqa: PLR2004
            received += int(words[0])
            sent += int(words[8])
    return received, sent


def _available_bytes(text: bytes) -> int:
    start = text.find(b"MemAvailable:")
    return int(text[start:].split(None, 2)[1]) * 1024 if start >= 0 else -1


class _CpuGroup:
    """CPU quota and throttling of a process's cgroup: of the tightest of its ancestors that has a quota."""

    def __init__(self, pid: int) -> None:
        self.quota_milli = -1
        self._folders = cgroup.folders(pid, "cpu")
        self._throttled: ProcFile | None = None
        self._throttled_folder: Path | None = None

    def refresh(self) -> None:
        """Read the quotas again: containers change them while they run."""
        quotas = [(quota, folder) for folder in self._folders if (quota := cgroup.quota_milli(folder)) > 0]
        self.quota_milli, folder = min(quotas, default=(-1, self._folders[0] if self._folders else None))
        if folder != self._throttled_folder:
            if self._throttled is not None:
                self._throttled.close()
            self._throttled = ProcFile(str(folder / "cpu.stat")) if folder else None
            self._throttled_folder = folder

    def throttled_ns(self) -> int:
        """Time for which the group was throttled."""
        words = self._throttled.read().split() if self._throttled else []
        if b"throttled_usec" in words:
            return int(words[words.index(b"throttled_usec") + 1]) * 1000
        if b"throttled_time" in words:
            return int(words[words.index(b"throttled_time") + 1])
        return -1
