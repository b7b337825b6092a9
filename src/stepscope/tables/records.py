"""Tables of numbers, as frozen sets of equally long numpy columns."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


class Table(Struct, frozen=True, kw_only=True):
    """Base of tables: every field is a numpy array int64 or float64 of the same length."""

    def __len__(self) -> int:
        """The number of rows."""
        return len(getattr(self, self.__struct_fields__[0]))

    def take(self, index: Any) -> Self:
        """The rows selected by ``index`` (a mask, a slice or positions)."""
        return type(self)(**{name: getattr(self, name)[index] for name in self.__struct_fields__})

    @classmethod
    def concat(cls, tables: Iterable[Self]) -> Self:
        """The rows of all tables, in order; an empty table if there are none."""
        parts = list(tables)
        if not parts:
            return cls.empty()
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in cls.__struct_fields__})

    @classmethod
    def empty(cls) -> Self:
        """A table without rows; ratio columns float64, the rest int64."""
        kinds = {True: np.float64, False: np.int64}
        return cls(**{name: np.empty(0, kinds[name.endswith("_ratio")]) for name in cls.__struct_fields__})


class RecordTable(Table, frozen=True, kw_only=True):
    """Records of one process, sorted by ``start_ns``. Shapes: int64[record]. See ``wire.kinds`` for meanings."""

    start_ns: I64
    """Start in nanoseconds since session start."""
    dur_ns: I64
    arg: I64
    name: I64
    kind: I64
    flags: I64
    thread: I64
    seq: I64


class Gaps(Table, frozen=True, kw_only=True):
    """Gaps of the duty cycle: times in which hot wrappers were detached and calls were only counted.

    A row is a second of a gap, or the last part of one, and one kind of call that was counted in it, sorted by
    ``start_ns``. Shapes: int64[row]. Made by ``store.gaps`` from REST records.
    """

    start_ns: I64
    """Nanoseconds since session start."""
    end_ns: I64
    kind: I64
    """``wire.kinds.Kind`` of the calls."""
    calls: I64

    def row_of(self, kind: int, at_ns: I64) -> I64:
        """The row that counts the calls of a kind at each time, -1 where none does. int64[time]."""
        rows = np.flatnonzero(self.kind == kind)
        last = np.searchsorted(self.start_ns[rows], at_ns, side="right") - 1
        found = np.append(rows, -1)[last]
        return np.where((found >= 0) & (at_ns < np.append(self.end_ns, 0)[found]), found, -1)


class Losses(Table, frozen=True, kw_only=True):
    """Records of one process that were written and are not in the session, sorted by time. Shapes: int64[loss].

    A row is a run of them. They were written, which is when they ended, between ``start_ns`` and ``end_ns``, the ends
    of the records before and after them. Made by ``store.losses``.
    """

    start_ns: I64
    """Nanoseconds since session start."""
    end_ns: I64
    records: I64
    """Number of records."""


class ProcessTable(Table, frozen=True, kw_only=True):
    """One measured process, sampled about once a second; counters are totals since its start. int64[sample]."""

    at_ns: I64
    pid: I64
    cpu_user_ns: I64
    cpu_system_ns: I64
    run_ns: I64
    """Time on a CPU, summed over threads (schedstat), with those that have ended, as of the last look at them."""
    wait_ns: I64
    """Time runnable but waiting for a CPU, summed over threads."""
    threads: I64
    threads_running: I64
    """Threads in state R at the moment."""
    rss_bytes: I64
    minor_faults: I64
    """Page faults of the process so far that needed no disk, all threads, also those that have ended."""
    major_faults: I64
    """The same for those that read from a disk."""
    voluntary_switches: I64
    involuntary_switches: I64
    read_bytes: I64
    write_bytes: I64
    vm_bytes: I64
    """Address space. -1 if an older session lacks it, like the next field."""
    shared_bytes: I64
    """Pages of files and shared memory within ``rss_bytes``: memory that the kernel can reclaim, and our own ring."""
    threads_blocked: I64
    """Threads in state D (waiting for a disk or a network file system) at the moment; every fifth sample, else -1."""
    tcp_rx_bytes: I64
    """Bytes received over its TCP connections that were seen open, without loopback; those shorter than a second are
    missed."""
    tcp_tx_bytes: I64
    """Bytes sent and acknowledged, likewise."""
    tcp_queued_bytes: I64
    """Bytes received and not yet read by the process, at the moment: 0 while it waits for the network. -1: not
    examined; connections are examined every third second while the network moves."""


class ThreadTable(Table, frozen=True, kw_only=True):
    """Threads of measured processes; counters are totals since the thread's start. int64[sample]."""

    at_ns: I64
    pid: I64
    native: I64
    run_ns: I64
    wait_ns: I64


class HostTable(Table, frozen=True, kw_only=True):
    """The host, about once a second; counters are totals. int64[sample]; -1 if the host does not report it."""

    at_ns: I64
    cpus: I64
    """CPUs that the job may use by its affinity; the quota is separate."""
    quota_milli_cpus: I64
    """cgroup quota in thousandths of a CPU, -1 for none."""
    busy_ns: I64
    """User + nice + system + irq time of all CPUs of the job's affinity."""
    idle_ns: I64
    iowait_ns: I64
    steal_ns: I64
    job_cpu_ns: I64
    """CPU time of the job's process tree that is measured (the job itself and children with TensorFlow)."""
    others_cpu_ns: I64
    """CPU time of all other processes, stepscope's own sidecar excluded; includes unmeasured children of the job."""
    own_cpu_ns: I64
    """CPU time of the sidecar."""
    throttled_ns: I64
    """Throttled time of the job's cgroup."""
    psi_cpu_ns: I64
    psi_io_ns: I64
    psi_memory_ns: I64
    """Totals of /proc/pressure "some"."""
    net_rx_bytes: I64
    net_tx_bytes: I64
    disk_read_bytes: I64
    disk_write_bytes: I64
    available_bytes: I64


CHILD, TASK, GROUP = 1, 2, 4
"""Bits of ``RivalTable.child``: the job started the process (at any depth); it is a task of the job's own cluster; it
is of the job's process group, or descends from one that is, and was not seen to descend from the job. Sessions before
0.1's GROUP have CHILD for both."""


class RivalTable(Table, frozen=True, kw_only=True):
    """Other processes that used CPU, the largest of each second. int64[sample]. ``name`` is an index into the
    session's rival names ((pid, command) pairs)."""

    at_ns: I64
    pid: I64
    name: I64
    child: I64
    """Bits: 1: the job started it (at any depth); 2: a task of the job's own cluster; 4: of the job's process group and
    not seen to descend from the job (since 0.1; before, it had bit 1)."""
    cpu_ns: I64
    """CPU time used within the interval that ends at ``at_ns``."""
    interval_ns: I64
    runnable: I64
    """Threads of a process of the job that were on a CPU or ready for one at ``at_ns``. -1: not looked at, or an older
    session lacks it."""


class CoreTable(Table, frozen=True, kw_only=True):
    """Each CPU that the job may use, about once a second (less often for more than 64); totals. int64[sample]."""

    at_ns: I64
    cpu: I64
    busy_ns: I64
    """User + nice + system + irq time."""
    idle_ns: I64
    iowait_ns: I64
    steal_ns: I64


class LinkTable(Table, frozen=True, kw_only=True):
    """Network interfaces of the job's network namespace that have transferred anything, about once a second; totals.
    int64[sample]. ``name`` is an index into the session's resource names.
    """

    at_ns: I64
    name: I64
    loopback: I64
    """Flag 1: packets never leave the host."""
    rx_bytes: I64
    tx_bytes: I64
    speed_bits_s: I64
    """Link speed stated by the driver; -1 if there is none (virtual machines). Limits enforced by a queueing discipline
    or a switch are not included."""


class DiskTable(Table, frozen=True, kw_only=True):
    """Block devices that have transferred anything, about once a second; totals since boot. int64[sample]. ``name`` is
    an index into the session's resource names.
    """

    at_ns: I64
    name: I64
    whole: I64
    """Flag 1: a physical disk; 0: a loop, device-mapper, RAID or RAM device, whose transfers may also count on another
    one."""
    read_bytes: I64
    write_bytes: I64
    reads: I64
    writes: I64
    busy_ns: I64
    """Time with at least one request in flight."""
    queue_ns: I64
    """Number of requests in flight, integrated over time."""
    limit_bytes_s: I64
    """Rate at which the job's cgroup may read from it (io.max, blkio.throttle); -1 for no limit."""


class MemoryTable(Table, frozen=True, kw_only=True):
    """Memory of the host and of the job's cgroup, about once a second. int64[sample]; -1 if there is none."""

    at_ns: I64
    total_bytes: I64
    available_bytes: I64
    swap_used_bytes: I64
    cgroup_bytes: I64
    """Bytes that count against the tightest limit of the job's cgroup and its ancestors, page cache included."""
    cgroup_limit_bytes: I64
    cgroup_file_bytes: I64
    """Page cache within ``cgroup_bytes``: released under pressure."""
    fault_ns: I64
    """CPU time of first touching a page of 4 KiB, measured by the collector on its own memory; -1 in most samples."""
    release_ns: I64
    """CPU time of releasing such a page, likewise."""
    huge_faults: I64
    """Number of faults served with huge pages, on the whole host, since its start (thp_fault_alloc). -1 if an older
    session lacks it, like the next field."""
    huge_fault_ns: I64
    """CPU time of first touching a huge page of 2 MiB, as ``fault_ns``; also -1 if the kernel provides none."""
    huge_release_ns: I64
    """CPU time of releasing such a page."""


class GpuTable(Table, frozen=True, kw_only=True):
    """GPUs as reported by NVML, about once a second. int64[sample]; -1 if not reported."""

    at_ns: I64
    name: I64
    """Index into the session's resource names."""
    busy_percent: I64
    """Share of NVML's last period (1/6 to 1 s) in which a kernel ran."""
    memory_busy_percent: I64
    """Share of the period in which device memory was read or written."""
    reserved_bytes: I64
    """Device memory in use by all processes: TensorFlow reserves nearly all of it at its start."""
    job_reserved_bytes: I64
    """Part of it used by measured processes."""
    total_bytes: I64
    pcie_rx_bytes_s: I64
    pcie_tx_bytes_s: I64
    """Rate of sending seen from the device, over 20 ms."""


class BurstTable(Table, frozen=True, kw_only=True):
    """A short series on the network, 50 samples a second for a second, now and then: whether the wire is ever idle.
    Totals over the interfaces of the job's namespace, without loopback. int64[sample].
    """

    at_ns: I64
    rx_bytes: I64
    tx_bytes: I64
    job_cpu_ns: I64
    """CPU time of the measured processes."""


class MemoryEventTable(Table, frozen=True, kw_only=True):
    """Memory events in a window of native sampling: sampled page faults, and every call that releases or maps memory.
    int64[event]; in time order within a window.
    """

    at_ns: I64
    window: I64
    """Number of the window, from 1, by which profiles of stacks are named."""
    pid: I64
    native: I64
    """Thread id of the kernel."""
    kind: I64
    """``MemoryEvent``."""
    address: I64
    bytes: I64
    """Bytes of the event, for a fault those of the page; -1 unknown."""
    detail: I64
    """Detail: for a fault the kind of mapping (``Mapped``), for madvise its advice; else 0."""
    weight: I64
    """Number of events that it stands for: one fault in so many is sampled."""


class MemoryEvent(enum.IntEnum):
    """Type of a memory event. Numbers are stored: never reused, never renumbered."""

    FAULT = 1
    MADVISE = 2
    MUNMAP = 3
    MMAP = 4
    BRK = 5
    """Change of the heap's end: ``address`` is the new end."""


class Mapped(enum.IntEnum):
    """Type of the mapping at a page fault. Numbers are stored."""

    UNKNOWN = 0
    ANONYMOUS = 1
    HEAP = 2
    STACK = 3
    FILE = 4
