"""Which pages a process holds, at some moments of a window: its beginning, its highest memory, its end.

The resident memory is read twenty times a second; the page map only where there is a reason, and for at most a
fiftieth of the time. All ways in which memory goes back to the kernel are seen that way, as it is not the calls that
are followed but their result.

Source: proc_pid_statm(5); Documentation/admin-guide/mm/pagemap.rst.
"""

from __future__ import annotations

import functools
import mmap
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.native.memory import page_scan
from stepscope.native.proc import pagemap, smaps
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.tables.records import I64, Bool

EVERY_S, LATEST_NS = 0.05, 1_000_000_000
"""Time between two readings of the resident memory, and age from which on the latest look is renewed."""
RESTS = 50
"""After a look, so many times its CPU time pass before the next one."""
HIGHER = 1 / 64
MORE_BYTES = 1 << 20
"""A look is taken when the memory is higher than at the highest look by this share and so many bytes."""
MAX_PAGES = 16 << 20
"""Maximum pages of address space that are read one by one, before Linux 6.7: 128 MiB of the page map."""
_PART = 1 << 20


class PageLook(Struct, frozen=True, kw_only=True):
    """The anonymous pages that a process holds at a moment, in memory or swapped out: runs by rising address."""

    at_ns: int
    """Time at which the look ended, CLOCK_MONOTONIC: pages that changed hands while it lasted are the later one's."""
    start: I64
    end: I64
    """Bounds of the runs. int64[run], bytes."""
    huge: Bool
    """Whether a run is in huge pages. bool[run]."""

    @property
    def bytes(self) -> int:
        """Their sum."""
        return int((self.end - self.start).sum())

    def runs_of(self, addresses: I64) -> I64:
        """The run that holds each address; -1: none."""
        found = np.searchsorted(self.start, addresses, side="right") - 1
        if not len(self.start):
            return found
        return np.where((found >= 0) & (addresses < self.end[found]), found, -1)

    def shared_bytes(self, other: PageLook) -> int:
        """Bytes at addresses that both hold."""
        upto = np.concatenate((np.zeros(1, np.int64), np.cumsum(other.end - other.start)))
        ends = np.concatenate((np.zeros(1, np.int64), other.end))

        def below(edges: I64) -> I64:
            runs = np.searchsorted(other.start, edges, side="right")
            return np.asarray(upto[runs] - np.maximum(0, ends[runs] - edges), np.int64)

        return int((below(self.end) - below(self.start)).sum())


def look(pid: int, pace: page_scan.PacedCalls) -> PageLook:
    """The anonymous pages of a process now.

    Raises:
        OSError: it has gone, or may not be examined.
        FormatError: it has more memory, or address space, than a look may take.
    """
    table, _ = smaps.read(page_scan.read(f"/proc/{pid}/maps", pace))
    fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if page_scan.can_scan():
            scanner = page_scan.Scanner(fd, pace)
            found = [scanner.pages(start, end) for start, end in page_scan.groups(table)] if len(table) else []
            start, end, flags = (
                np.concatenate([np.empty(0, np.int64), *(part[column] for part in found)]) for column in range(3)
            )
            held = flags & (page_scan.PRESENT | page_scan.SWAPPED) != 0
            kept = held & (flags & (page_scan.FILE | page_scan.ZERO) == 0)
            huge = flags[kept] & page_scan.HUGE != 0
            return PageLook(at_ns=time.monotonic_ns(), start=start[kept], end=end[kept], huge=huge)
        used = table.take((table.readable == 1) & (table.private == 1))
        runs = list(_runs(fd, pace, used.start, used.end))
    finally:
        os.close(fd)
    edges = np.concatenate([np.empty((2, 0), np.int64), *runs], axis=1)
    return PageLook(at_ns=time.monotonic_ns(), start=edges[0], end=edges[1], huge=np.zeros(edges.shape[1], np.bool_))


def _runs(fd: int, pace: page_scan.PacedCalls, starts: I64, ends: I64) -> Iterator[I64]:
    """Bounds of runs of anonymous pages, read page by page."""
    if int((ends - starts).sum()) > MAX_PAGES * mmap.PAGESIZE:
        raise FormatError(f"more than {MAX_PAGES} pages of address space; needs Linux 6.7")
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        for at in range(start // mmap.PAGESIZE, end // mmap.PAGESIZE, _PART // pagemap.ENTRY_BYTES):
            size = min(_PART, (end // mmap.PAGESIZE - at) * pagemap.ENTRY_BYTES)
            place = at * pagemap.ENTRY_BYTES
            held = pagemap.anonymous(pace(functools.partial(os.pread, fd, size, place)))
            edges = np.flatnonzero(np.diff(held, prepend=False, append=False)).reshape(-1, 2).T
            yield (edges + at) * mmap.PAGESIZE


class PageLooks:
    """Looks at one process in a separate thread, from ``begins`` on, until ``stop`` or for ``seconds``."""

    def __init__(self, pid: int, begins: Callable[[], int], seconds: float) -> None:
        """Start the thread. ``begins``: when sampling began, CLOCK_MONOTONIC; 0: it has not."""
        self.base: PageLook | None = None
        self.highest: PageLook | None = None
        self.last: PageLook | None = None
        self.most_bytes = self.most_at_ns = 0
        """The highest memory that was read, and when: there may have been no time for a look at it."""
        self.cpu_ns = 0
        self.problem = ""
        self._pid, self._begins, self._seconds = pid, begins, seconds
        self._stopped = threading.Event()
        self._rested_ns = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End looking, with a last look if the process is there."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._begins():
            if self._stopped.wait(EVERY_S / 5):
                return
        pace = page_scan.PacedCalls()
        try:
            self._look(pace)
            self.base = self.last
            until = time.monotonic() + self._seconds
            with Path(f"/proc/{self._pid}/statm").open("rb", buffering=0) as statm:
                while not self._stopped.wait(EVERY_S) and time.monotonic() < until:
                    self._follow(statm.fileno(), pace)
            self._look(pace)
        except (OSError, FormatError) as error:
            # a process that has ended leaves the looks before its end
            self.problem = "" if self.base is not None and not isinstance(error, FormatError) else str(error)
        self.cpu_ns = time.thread_time_ns()

    def _follow(self, statm: int, pace: page_scan.PacedCalls) -> None:
        now_ns = time.monotonic_ns()
        words = os.pread(statm, 100, 0).split()
        own = (int(words[1]) - int(words[2])) * mmap.PAGESIZE
        if own > self.most_bytes:
            self.most_bytes, self.most_at_ns = own, now_ns
        known = self.highest.bytes if self.highest is not None else 0
        higher = own > known * (1 + HIGHER) + MORE_BYTES
        old = self.last is not None and now_ns - self.last.at_ns > LATEST_NS
        if now_ns >= self._rested_ns and (higher or old):
            self._look(pace)

    def _look(self, pace: page_scan.PacedCalls) -> None:
        began = time.thread_time_ns()
        self.last = look(self._pid, pace)
        self._rested_ns = time.monotonic_ns() + RESTS * (time.thread_time_ns() - began)
        if self.highest is None or self.last.bytes > self.highest.bytes:
            self.highest = self.last
