"""Measures what a page fault costs on this host, on memory of the collector's own.

A fault's cost differs by a factor of four between a bare machine and a virtual one, so it is measured, not assumed. A
round maps nothing new: it touches pages that were given back to the kernel a moment before, as an allocator does that
refaults, and takes CPU time, so that a busy host does not make faults look dear. Huge pages are kept out: the cost is
that of a page of 4 KiB.
"""

from __future__ import annotations

import mmap
import time
from typing import NamedTuple

import numpy as np

ROUND_BYTES = 1 << 20
"""256 pages: half a millisecond of CPU time."""
FIRST_ROUNDS = 10
"""One at each of so many looks, while the job starts; later ones, rarely, see a host that is used otherwise."""
LATER_EVERY = 30
_PAGE_BYTES = mmap.PAGESIZE


class FaultCost(NamedTuple):
    """Nanoseconds of CPU time per page."""

    fault_ns: int
    """First touch: the fault, a zeroed page, its accounting."""
    release_ns: int
    """Giving it back with MADV_DONTNEED."""


class FaultProbe:
    """Rounds of measurement, a few at the start and then now and then."""

    def __init__(self) -> None:
        """Nothing is mapped before the first round."""
        self._map: mmap.mmap | None = None
        self._looks = 0

    def look(self) -> FaultCost | None:
        """One round when one is due; None otherwise, and where the kernel gives no memory.

        Cost: 0.5 to 2 ms of CPU time when due; 1 MiB of memory while it runs.
        """
        self._looks += 1
        if self._looks > FIRST_ROUNDS and self._looks % LATER_EVERY:
            return None
        try:
            if self._map is None:
                self._map = mmap.mmap(-1, ROUND_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self._map.madvise(mmap.MADV_NOHUGEPAGE)
            return _round(self._map)
        except OSError:  # no memory, or a kernel without these advices
            return None


def _round(memory: mmap.mmap) -> FaultCost:
    pages = np.frombuffer(memory, np.uint8)[::_PAGE_BYTES]
    begun = time.thread_time_ns()
    pages[:] = 1
    faulted = time.thread_time_ns()
    pages[:] = 2
    touched = time.thread_time_ns()
    memory.madvise(mmap.MADV_DONTNEED)
    released = time.thread_time_ns()
    count = len(pages)
    return FaultCost(
        fault_ns=max(0, (faulted - begun) - (touched - faulted)) // count, release_ns=(released - touched) // count
    )
