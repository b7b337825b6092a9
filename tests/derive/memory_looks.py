"""Looks at address spaces, mapping by mapping: the test chooses how they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.tables.address_space import MappingTable, MemoryLook
from stepscope.tables.page_walks import PageWalks, WalkPoint

KB, MB, HUGE = 1 << 10, 1 << 20, 2 << 20
BASE = 0x7F00_0000_0000
NAMES = ("", "/lib/libc.so.6", "[heap]", "[anon:pool]")


def row(start: int, size: int, **more: int) -> dict[str, int]:
    """An anonymous mapping, wholly resident in small pages, that nobody asked huge pages for."""
    blocks = max(0, (start + size) // HUGE - -(-start // HUGE))
    usual = {"name": 0, "writable": 1, "readable": 1, "private": 1, "rss_bytes": size, "anonymous_bytes": size}
    usual |= {"huge_bytes": 0, "swap_bytes": 0, "eligible": 0, "full_blocks": blocks, "part_blocks": 0}
    return {"start": start, "end": start + size, **usual, "block_pages": blocks * 512, **more}


def look(rows: Sequence[Mapping[str, int]], *, at_s: float = 0.0, **counters: int) -> MemoryLook:
    """A look at mappings."""
    columns = {name: np.array([one[name] for one in rows], np.int64) for name in MappingTable.__struct_fields__}
    return MemoryLook(
        pid=7,
        at_ns=int(at_s * 1e9),
        page_bytes=4096,
        huge_page_bytes=HUGE,
        mode="madvise",
        mappings=MappingTable(**columns),
        names=NAMES,
        counters=counters,
        wall_ns=5,
    )


def padded(count: int, size: int = 3 * MB) -> list[dict[str, int]]:
    """Mappings on boundaries, each followed by a hole up to the next."""
    step = -(-size // HUGE) * HUGE
    return [row(BASE + i * step, size) for i in range(count)]


def packed(count: int, size: int = 3 * MB) -> list[dict[str, int]]:
    """Mappings without holes."""
    return [row(BASE + 4096 + i * size, size) for i in range(count)]


def walk_points(*costs: float) -> tuple[WalkPoint, ...]:
    """Points of 4 MiB, 8 MiB ... at which a miss costs so much."""
    return tuple(
        WalkPoint(bytes=4 << (20 + i), small_ns=cost + 100.0, huge_ns=100.0, walk_ns=cost)
        for i, cost in enumerate(costs)
    )


GOOD_WALKS = PageWalks(page_bytes=4096, huge_page_bytes=HUGE, points=walk_points(1.0, 40.0, 30.0))
