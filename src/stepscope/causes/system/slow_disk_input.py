"""Whether the process reads from a disk, and whether that disk or its cgroup's limit is exhausted.

A disk that is busy all the time the steps wait cannot deliver more to a reader with this access pattern. Reads that the
page cache answers, and pipelines that decode, leave the disk idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.system import resources
from stepscope.derive.machine import counters

if TYPE_CHECKING:
    from stepscope.causes.system.resources import Resources
    from stepscope.derive.machine.counters import Disk
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import I64

MIN_READ = 200_000.0
"""Bytes per second: less is not a significant input of a step."""
FULL_BUSY = 0.7
"""Share of the time with a request in flight from which the reader waits for the disk: a reader that requests one piece
at a time and does nothing else reaches 0.75 (a loop device capped at 400 requests a second, busy neighbours), one that
decodes between its reads 0.1."""
FULL_LIMIT = 0.85
"""Share of the cgroup's read limit."""
FULL_MEMORY = 0.95
"""Share of the cgroup's memory limit: the kernel reclaims pages in batches, so it is never quite full."""
MIN_JOB = 0.5
"""The process's share of the device's reads below which another process keeps the disk busy."""


class DiskInput(Struct, frozen=True, kw_only=True):
    """Reading during the steady steps. Rates in bytes a second."""

    device: str
    job_read: float
    device_read: float
    busy_ratio: float
    """Share of the time with a request in flight."""
    in_flight: float
    """Requests in flight, on average over the busy time."""
    request_bytes: float
    limit: float
    """The cgroup's limit for reads; -1 for no limit."""
    memory_limit: int
    """The cgroup's memory limit in bytes, page cache included; -1 for no limit."""
    memory_ratio: float
    """Used share of that limit: near 1, the page cache evicts what the next epoch will read again. 0 without a
    limit."""

    @property
    def limit_ratio(self) -> float:
        """Rate of reads as a share of the limit; 0 without a limit."""
        return self.job_read / self.limit if self.limit > 0 else 0.0

    @property
    def is_full(self) -> bool:
        """Whether this process's reads exhaust the disk or the cgroup's limit."""
        if self.limit_ratio >= FULL_LIMIT:
            return True
        return self.busy_ratio >= FULL_BUSY and self.job_ratio >= MIN_JOB

    @property
    def is_squeezed(self) -> bool:
        """Whether the cgroup's memory is too full for the page cache to keep what is read."""
        return self.memory_ratio >= FULL_MEMORY

    @property
    def job_ratio(self) -> float:
        """Share of the device's reads that are the process's."""
        return self.job_read / self.device_read if self.device_read > 0 else 0.0


def build(view: StepsView) -> DiskInput | None:
    """None if the process reads next to nothing from disks, or the kernel does not say how much."""
    used = view.get(resources.build)
    if used is None or len(used.process) < counters.DIFFERENCE:
        return None
    process = used.process
    if int(process.read_bytes[0]) < 0:
        return None
    span = float(process.at_ns[-1] - process.at_ns[0]) / 1e9
    read = float(process.read_bytes[-1] - process.read_bytes[0]) / span if span > 0 else 0.0
    if read < MIN_READ:
        return None
    memory = view.session.memory
    held = (memory.at_ns >= process.at_ns[0]) & (memory.at_ns <= process.at_ns[-1]) & (memory.cgroup_limit_bytes > 0)
    limit = int(memory.cgroup_limit_bytes[held][-1]) if held.any() else -1
    share = float(np.median(memory.cgroup_bytes[held] / memory.cgroup_limit_bytes[held])) if held.any() else 0.0
    found = [
        replace(_of_device(disk, used, read), memory_limit=limit, memory_ratio=share)
        for disk in counters.disks(view.session)
    ]
    fitting = [d for d in found if d.device_read > 0]
    return min(fitting, key=lambda d: abs(np.log(d.job_ratio)), default=None)


def _of_device(disk: Disk, resources: Resources, read: float) -> DiskInput:
    edges = resources.edges[[0, -1]]

    def rate(counter: I64) -> float:
        return float(counters.rate_at(edges, disk.at_ns, counter)[0])

    reads = 1e9 * rate(disk.reads)
    bytes_s = 1e9 * rate(disk.read_bytes)
    busy = min(1.0, rate(disk.busy_ns))
    return DiskInput(
        device=disk.name,
        job_read=read,
        device_read=bytes_s,
        busy_ratio=busy,
        in_flight=rate(disk.queue_ns) / busy if busy > 0 else 0.0,
        request_bytes=bytes_s / reads if reads > 0 else 0.0,
        limit=disk.limit_bytes_s,
        memory_limit=-1,
        memory_ratio=0.0,
    )
