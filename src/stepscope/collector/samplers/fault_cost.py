"""Measures the cost of page faults on this host, for small and huge pages, on the collector's own memory.

A fault's cost differs by a factor of four between a bare machine and a virtual one, so it is measured, not assumed. A
round maps nothing new: it touches pages that were released to the kernel a moment before, like an allocator that
refaults, and measures CPU time, so that a busy host does not make faults look expensive. A fault of a huge page zeroes
512 times as much, so it is measured separately, if the kernel provides one on request: a round with more than one fault
had none.
"""

from __future__ import annotations

import mmap
import resource
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROUND_BYTES = 1 << 20
"""Size of a round, 256 pages: half a millisecond of CPU time."""
FIRST_ROUNDS = 10
"""Number of initial rounds, one per look while the job starts; later ones are rare and capture changed use of the
host."""
LATER_EVERY = 30
HUGE_BYTES = 2 << 20
"""Size of a measured huge page; zeroing other sizes would take too long."""
_HUGE_SIZE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
_PAGE_BYTES = mmap.PAGESIZE


class FaultRound(NamedTuple):
    """One round of measurement: nanoseconds of CPU time per page."""

    fault_ns: int
    """Cost of a first touch: the fault, a zeroed page, its accounting."""
    release_ns: int
    """Cost of releasing it with MADV_DONTNEED."""
    huge_fault_ns: int = -1
    """Cost of a first touch of a huge page; -1 if the kernel provides none."""
    huge_release_ns: int = -1


class FaultProbe:
    """Rounds of measurement, a few at the start and then now and then."""

    def __init__(self) -> None:
        """Begin; nothing is mapped before the first round."""
        self._map: mmap.mmap | None = None
        self._huge: mmap.mmap | None = None
        self._refused = False
        self._looks = 0

    def look(self) -> FaultRound | None:
        """Make one round if one is due; None otherwise, and if the kernel provides no memory.

        Cost: 0.5 to 2 ms of CPU time when due; 3 MiB of memory while it runs.
        """
        self._looks += 1
        if self._looks > FIRST_ROUNDS and self._looks % LATER_EVERY:
            return None
        try:
            if self._map is None:
                self._map = mmap.mmap(-1, ROUND_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self._map.madvise(mmap.MADV_NOHUGEPAGE)
            small = _round(self._map)
        except OSError:  # no memory, or a kernel without these advices
            return None
        huge = None if self._refused else self._huge_round()
        self._refused = huge is None
        return small._replace(huge_fault_ns=huge[0], huge_release_ns=huge[1]) if huge is not None else small

    def _huge_round(self) -> tuple[int, int] | None:
        """(first touch, release) of one huge page; None if none was provided."""
        try:
            if self._huge is None:
                if int(_HUGE_SIZE.read_text("ascii")) != HUGE_BYTES:
                    return None
                self._huge = mmap.mmap(-1, 2 * HUGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self._huge.madvise(mmap.MADV_HUGEPAGE)
            whole = np.frombuffer(self._huge, np.uint8)
            first = -whole.ctypes.data % HUGE_BYTES
            page = whole[first : first + HUGE_BYTES : _PAGE_BYTES]
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
            cost = _touched(page, self._huge)
            made = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
        except (OSError, ValueError):  # no memory, or a kernel without huge pages
            return None
        return cost if made < len(page) // 2 else None


def _round(memory: mmap.mmap) -> FaultRound:
    pages = np.frombuffer(memory, np.uint8)[::_PAGE_BYTES]
    fault_ns, release_ns = _touched(pages, memory)
    return FaultRound(fault_ns=fault_ns // len(pages), release_ns=release_ns // len(pages))


def _touched(pages: npt.NDArray[np.uint8], memory: mmap.mmap) -> tuple[int, int]:
    """(first touch, release) of all pages of a map, without the base cost of touching."""
    begun = time.thread_time_ns()
    pages[:] = 1
    faulted = time.thread_time_ns()
    pages[:] = 2
    touched = time.thread_time_ns()
    memory.madvise(mmap.MADV_DONTNEED)
    released = time.thread_time_ns()
    return max(0, (faulted - begun) - (touched - faulted)), released - touched
