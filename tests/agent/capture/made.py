"""Records and orders that tests of captures share."""

from __future__ import annotations

from stepscope.wire.kinds import Kind

MS = 1_000_000
Record = tuple[int, ...]

GOOD: dict[str, object] = {
    "id": "a",
    "steps": 10,
    "seconds": 20.0,
    "level": 2,
    "margin": 10,
    "thread": 0,
    "anchors": [[2, 7]],
    "task": None,
}


def calls(
    count: int, every_ms: int = 100, *, kind: Kind = Kind.EXECUTION, name: int = 1, at_ms: int = 0, flags: int = 0
) -> list[Record]:
    """So many calls of half the time between two."""
    return [((at_ms + i * every_ms) * MS, every_ms * MS // 2, 0, name, int(kind), flags, 1) for i in range(count)]
