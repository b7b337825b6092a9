"""Files of system calls in a session. One from elsewhere is hostile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.tables import layout
from stepscope.tables.system_calls import SCHEMA, SystemCalls

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 16 << 20


def write(session: Path, number: int, calls: SystemCalls) -> Path:
    """Store a window.

    Raises:
        OSError: no space, or no rights.
    """
    path = session / layout.CALLS / f"{number:04d}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, msgspec.json.encode(calls))
    return path


def decode(data: bytes) -> SystemCalls:
    """What a file holds.

    Raises:
        ValueError: it is damaged, or not such a file.
    """
    found = msgspec.json.decode(data, type=SystemCalls)
    if found.schema != SCHEMA:
        raise ValueError(f"schema {found.schema[:40]!r}; expected {SCHEMA}")
    figures = [
        figure
        for one in found.calls
        for figure in (one.count, one.total_ns, one.longest_ns, one.bytes, one.failed, one.unfinished_ns)
    ]
    if found.wall_ns <= 0 or min(figures, default=0) < 0:
        raise ValueError("a time or a count is negative, or the window has no length")
    return found
