"""What translating addresses costs on a machine: chases over small and huge pages, as measured once.

``PageWalks`` is the file ``captures/page_walks.json`` of a session, and one in the user's state folder.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

SCHEMA = "stepscope.page-walks/1"
ENTRIES_PER_LINE = 8
"""Entries of a page table in a line of the cache, 64 bytes."""
MAX_POINTS = 64
"""Number of points in a file beyond which it is none of ours."""


class WalkPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses in random order to one line of each page of 4 KiB, each access waiting for the one before."""

    bytes: int
    """Size of the memory that they are spread over."""
    small_ns: float
    """Time of an access if the memory is in small pages: the median of the rounds."""
    huge_ns: float
    """Same if it is in huge pages."""
    walk_ns: float
    """Upper quartile of the difference: what an access can cost more because its page is small."""


class PageWalks(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. Since 0.1."""

    schema: str = SCHEMA
    page_bytes: int = 0
    huge_page_bytes: int = 0
    points: tuple[WalkPoint, ...] = ()
    """By rising size."""
    complete: bool = False
    """Flag: false if time was up before the largest size; the points hold, and are not kept for other sessions."""
    problem: str = ""
    """Why nothing was measured; "" if it was."""
    wall_ns: int = 0
    """Duration of the measurement."""

    def cost_ns(self, size: int, *, in_order: bool = False) -> float:
        """The most that a miss costs in a process with ``size`` bytes in small pages; there is at least one point.

        Above the largest point, page tables may be in no cache: two accesses to memory are added, one for the machine's
        tables and one, if it is virtual, for its host's. Pages that are used in order share them (docs/decisions/0055).
        """
        points = [self.points[0], *(b for a, b in pairwise(self.points) if a.bytes < size)]
        beyond = 2 * self.points[-1].huge_ns if size > self.points[-1].bytes else 0.0
        return max(point.walk_ns for point in points) + beyond / (ENTRIES_PER_LINE if in_order else 1)
