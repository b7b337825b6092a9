"""Resident parts of each mapping, queried in calls so short that no thread has to wait for one.

The kernel holds the lock of the address space while smaps counts one mapping: 10 ms for 512 MiB of small pages, plus
the time for which the reader is preempted. A scan of the page map holds it for some thousand pages, and runs in a
real-time section; without the rights for that it rests between calls before the time slice is over, and so is preempted
less often.

Source: Documentation/admin-guide/mm/pagemap.rst and include/uapi/linux/fs.h, PAGEMAP_SCAN (Linux 6.7).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from stepscope.native.kernel.realtime_section import RealtimeSection
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.tables.address_space import MappingTable
    from stepscope.tables.records import I64, Bool

_Made = TypeVar("_Made")
_SCAN = 0xC0606610
_ARGUMENTS = struct.Struct("=12Q")
_WALK_END = struct.Struct("=Q")
_WALK_END_AT = 32
_REGION = np.dtype([("start", "<u8"), ("end", "<u8"), ("flags", "<u8")])
FILE, PRESENT, SWAPPED, ZERO, HUGE = 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6
_WANTED = PRESENT | SWAPPED
_TOLD = FILE | PRESENT | SWAPPED | ZERO | HUGE
CALL_PAGES = 2048
"""Maximum resident pages per call: some 0.05 ms."""
CALL_BYTES = 256 << 20
"""Maximum address space per call: page tables may exist without pages."""
_EMPTY_BYTES = 64 << 30
"""Maximum address space after a call that found nothing."""
_REGIONS = 1024
MAX_CALLS = 65_536
"""Maximum calls per look, 512 GiB in small pages. Beyond it the look fails."""
MAX_BLOCKS = 1 << 20
"""Maximum blocks of a mapping, from its first page to its last: 2 TiB."""
_NEAR_BYTES = 64 << 20
_PART_BYTES = 64 << 10
_WORK_NS, _REST_S = 500_000, 0.001
"""CPU time between rests. Source: the shortest time slice of Linux, 0.75 ms (kernel/sched/fair.c)."""
_HUGETLB = "/anon_hugepage"


class PacedCalls:
    """Makes calls that may hold a lock, in a real-time section or else after a rest, and records the longest of
    them.
    """

    def __init__(self) -> None:
        """Begin without a rest."""
        self.longest_ns = 0
        self.realtime = RealtimeSection()
        self._cpu_ns = -_WORK_NS

    def __call__(self, made: Callable[[], _Made]) -> _Made:
        """Make a call."""
        if not self.realtime.allowed and time.thread_time_ns() - self._cpu_ns >= _WORK_NS:
            time.sleep(_REST_S)
            self._cpu_ns = time.thread_time_ns()
        with self.realtime:
            began = time.monotonic_ns()
            found = made()
            self.longest_ns = max(self.longest_ns, time.monotonic_ns() - began)
        return found


class Pages(NamedTuple):
    """Runs of pages that are resident or swapped out, by address. int64[run]."""

    start: I64
    end: I64
    flags: I64

    def bytes_below(self, edges: I64, which: Bool) -> I64:
        """The number of bytes of the runs ``which`` below each address."""
        starts, ends = self.start[which], self.end[which]
        upto = np.concatenate((np.zeros(1, np.int64), np.cumsum(ends - starts)))
        runs = np.searchsorted(starts, edges, side="right")
        last = np.concatenate((np.zeros(1, np.int64), ends))[runs]
        return np.asarray(upto[runs] - np.maximum(0, last - edges), np.int64)


class Scanner:
    """Scans one process through its open page map."""

    def __init__(self, fd: int, pace: PacedCalls) -> None:
        """Use ``fd``: /proc/PID/pagemap."""
        self._fd = fd
        self._pace = pace
        self._regions = np.zeros(_REGIONS, _REGION)
        self._calls = 0

    def pages(self, start: int, end: int) -> Pages:
        """The pages from ``start`` to ``end``, both on page boundaries.

        Raises:
            OSError: this kernel cannot, or the process has gone.
            FormatError: there is more than a look may take.
        """
        found = [np.zeros(0, _REGION)]
        step = CALL_BYTES
        while start < end:
            behind, regions = self._call(start, min(end, start + step))
            step = CALL_BYTES if len(regions) else min(2 * step, _EMPTY_BYTES)
            found.append(regions)
            start = behind
        every = np.concatenate(found)
        return Pages(*(every[name].astype(np.int64) for name in ("start", "end", "flags")))

    def _call(self, start: int, end: int) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.void]]]:
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS * CALL_PAGES} pages are in memory: a snapshot would take too long")
        place = self._regions.ctypes.data
        arguments = bytearray(
            _ARGUMENTS.pack(_ARGUMENTS.size, 0, start, end, 0, place, _REGIONS, CALL_PAGES, 0, 0, _WANTED, _TOLD)
        )
        count = self._pace(lambda: fcntl.ioctl(self._fd, _SCAN, arguments, True))
        (behind,) = _WALK_END.unpack_from(arguments, _WALK_END_AT)
        return (behind if behind > start else end), self._regions[:count].copy()


def read(path: str, pace: PacedCalls) -> bytes:
    """A file of /proc, in parts."""
    parts = [b"-"]
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while parts[-1]:
            parts.append(pace(lambda: os.read(fd, _PART_BYTES)))
    finally:
        os.close(fd)
    return b"".join(parts[1:])


def can_scan() -> bool:
    """Whether this kernel can."""
    try:
        with Path("/proc/self/pagemap").open("rb", buffering=0) as stream:
            Scanner(stream.fileno(), PacedCalls()).pages(0, mmap.PAGESIZE)
    except OSError:
        return False
    return True


def with_pages(scanner: Scanner, table: MappingTable, names: Sequence[str], *, huge: int, always: bool) -> MappingTable:
    """Mappings with their resident memory. ``huge``: bytes of a huge page, 0 none.

    ``eligible`` is inferred here: mappings that have huge pages, and with ``always`` all private anonymous ones that a
    whole block fits into.
    """
    found = [scanner.pages(start, end) for start, end in groups(table)]
    pages = Pages(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    counted = ~np.array([name.startswith(_HUGETLB) for name in names], np.bool_)[table.name]
    resident = (pages.flags & (PRESENT | ZERO)) == PRESENT
    anonymous = resident & (pages.flags & FILE == 0)
    kinds = (resident, anonymous, anonymous & (pages.flags & HUGE != 0), pages.flags & SWAPPED != 0)
    rss, own, in_huge, swap = (
        (pages.bytes_below(table.end, kind) - pages.bytes_below(table.start, kind)) * counted for kind in kinds
    )
    blocks = np.full((3, len(table)), -1, np.int64)
    for row in np.flatnonzero((own >= huge) & (table.private == 1)) if huge else ():
        blocks[:, row] = _blocks(pages, int(table.start[row]), int(table.end[row]), huge)
    nameless = ~np.array([name.startswith("/") for name in names], np.bool_)[table.name]
    fits = table.end // huge > -(-table.start // huge) if huge else np.zeros(len(table), np.bool_)
    asked = fits & nameless & (table.private == 1) & (table.readable == 1) & always
    return replace(
        table,
        rss_bytes=rss,
        anonymous_bytes=own,
        huge_bytes=in_huge,
        swap_bytes=swap,
        eligible=((in_huge > 0) | asked).astype(np.int64),
        full_blocks=blocks[0],
        part_blocks=blocks[1],
        block_pages=blocks[2],
    )


def groups(table: MappingTable) -> list[tuple[int, int]]:
    """(start, end) of mappings that are close enough to be scanned together."""
    far = np.flatnonzero(table.start[1:] - table.end[:-1] > _NEAR_BYTES) + 1
    firsts, lasts = np.concatenate(([0], far)), np.concatenate((far, [len(table)])) - 1
    return list(zip(table.start[firsts].tolist(), table.end[lasts].tolist(), strict=True))


def _blocks(pages: Pages, start: int, end: int, huge: int) -> tuple[int, int, int]:
    """Aligned blocks within a mapping that are full, those that are partly full, small pages in both; -1 each if there
    are none, or too many to count.
    """
    there = pages.flags & PRESENT != 0
    first, last = np.searchsorted(pages.end[there], start, "right"), np.searchsorted(pages.start[there], end) - 1
    if end // huge <= -(-start // huge) or last < first:
        return -1, -1, -1
    begin = max(-(-start // huge), int(pages.start[there][first]) // huge)
    behind = min(end // huge, -(-int(pages.end[there][last]) // huge))
    if behind <= begin:
        return 0, 0, 0
    if behind - begin > MAX_BLOCKS:
        return -1, -1, -1
    inside = np.diff(pages.bytes_below(np.arange(begin, behind + 1, dtype=np.int64) * huge, there))
    full = int((inside == huge).sum())
    return full, int((inside > 0).sum()) - full, int(inside.sum()) // mmap.PAGESIZE
