"""The file of what translating addresses costs, in a session or the state folder. One from elsewhere is hostile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from stepscope.tables import layout
from stepscope.tables.page_walks import MAX_POINTS, SCHEMA, PageWalks

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 64 << 10


def write(session: Path, walks: PageWalks) -> None:
    """Store what was measured.

    Raises:
        OSError: no space, or no rights.
    """
    path = session / layout.PAGE_WALKS
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, msgspec.json.encode(walks))


def decode(data: bytes) -> PageWalks:
    """What a file holds.

    Raises:
        ValueError: it is damaged, or not such a file.
    """
    found = msgspec.json.decode(data, type=PageWalks)
    if found.schema != SCHEMA:
        raise ValueError(f"schema {found.schema[:40]!r}; expected {SCHEMA}")
    if len(found.points) > MAX_POINTS:
        raise ValueError(f"{len(found.points)} points; at most {MAX_POINTS} are measured")
    figures = [figure for point in found.points for figure in (point.small_ns, point.huge_ns, point.walk_ns)]
    if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
        raise ValueError("a time is negative or not finite")
    sizes = [point.bytes for point in found.points]
    if sizes != sorted(set(sizes)) or any(size <= 0 for size in sizes):
        raise ValueError("its points are not in the order of sizes")
    return found
