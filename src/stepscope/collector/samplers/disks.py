"""Samples the block devices, and what the job's cgroup may read from each.

Source: /proc/diskstats (Documentation/admin-guide/iostats.rst), as read by the host sampler; cgroup v2 ``io.max``, v1
``blkio.throttle.read_bps_device``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.samplers.base import Rows, Targets
from stepscope.collector.samplers.host import whole_disks
from stepscope.native.cgroups import cgroup
from stepscope.tables.records import DiskTable

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.samplers.names import NameNumbers

_SECTOR_BYTES = 512
_MS = 1_000_000
_LIMITS_EVERY = 5
_WORDS = 14


class DiskSampler:
    """Follows the devices that move data."""

    def __init__(self, origin_ns: int, names: NameNumbers) -> None:
        """Times in rows count from ``origin_ns``; devices are named in ``names``."""
        self.rows = Rows(DiskTable)
        self._origin_ns = origin_ns
        self._names = names
        self._whole = frozenset(whole_disks())
        self._folders: list[Path] | None = None
        self._limits: dict[str, int] = {}
        self._looks = 0

    def sample(self, now_ns: int, text: bytes, targets: Targets) -> None:
        """Add a row for each whole device that has transferred anything; ``text`` is /proc/diskstats."""
        if self._folders is None and targets.job_pid:
            self._folders = [*cgroup.folders(targets.job_pid, "io"), *cgroup.folders(targets.job_pid, "blkio")]
        if self._looks % _LIMITS_EVERY == 0:
            self._limits = read_limits(self._folders or [])
        self._looks += 1
        for line in text.split(b"\n"):
            words = line.split()
            if len(words) < _WORDS or (words[3] == b"0" and words[7] == b"0"):
                continue
            name = words[2].decode("utf-8", "replace")
            if _is_partition(name, self._whole):
                continue
            self.rows.add(
                now_ns - self._origin_ns,
                self._names.number(f"disk:{name}"),
                int(name in self._whole),
                int(words[5]) * _SECTOR_BYTES,
                int(words[9]) * _SECTOR_BYTES,
                int(words[3]),
                int(words[7]),
                int(words[12]) * _MS,
                int(words[13]) * _MS,
                self._limits.get(f"{words[0].decode()}:{words[1].decode()}", -1),
            )


def _is_partition(name: str, whole: frozenset[str]) -> bool:
    """Whether a name is a part of a whole disk: vda1, nvme0n1p2."""
    return name not in whole and any(name.startswith(disk) and name[len(disk) :].strip("p").isdigit() for disk in whole)


def read_limits(folders: list[Path]) -> dict[str, int]:
    """Readable bytes per second by device number "major:minor": the tightest limit of a group and its ancestors."""
    limits: dict[str, int] = {}
    for folder in folders:
        for name in ("io.max", "blkio.throttle.read_bps_device"):
            for line in cgroup.read(folder / name).splitlines():
                device, *words = line.split()
                values = [w.removeprefix("rbps=") for w in words if w.startswith("rbps=") or w.isdigit()]
                if values and values[0].isdigit():
                    limits[device] = min(int(values[0]), limits.get(device, int(values[0])))
    return limits
