"""The file ``captures/replay.json``: ops that were replayed alone after the job. A file from elsewhere is hostile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from stepscope.model.session.replays import MAX_OPS, SCHEMA, Replays
from stepscope.tables import layout

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1 << 20


def write(session: Path, replays: Replays) -> None:
    """Store what was measured.

    Raises:
        OSError: no space, or no rights.
    """
    path = session / layout.REPLAY
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, msgspec.json.encode(replays))


def decode(data: bytes) -> Replays:
    """What a file holds.

    Raises:
        ValueError: it is damaged, or not such a file.
    """
    found = msgspec.json.decode(data, type=Replays)
    if found.schema != SCHEMA:
        raise ValueError(f"schema {found.schema[:40]!r}; expected {SCHEMA}")
    if len(found.ops) > MAX_OPS:
        raise ValueError(f"{len(found.ops)} ops; at most {MAX_OPS} are replayed")
    times = [time for op in found.ops for time in op.times]
    figures = [
        figure
        for time in times
        for figure in (time.fastest_ns, time.median_ns, time.slow_ns, time.warm_ns, time.waited_ratio)
    ]
    roofs = found.roofs
    if roofs is not None:
        figures += [roofs.flops_per_s, roofs.memory_bytes_per_s, roofs.fixed_ns, *(rate for _, rate in roofs.copies)]
    if not all(math.isfinite(figure) and figure >= 0 for figure in (*figures, found.others_cores, found.fixed_ns)):
        raise ValueError("a time or a rate is negative or not finite")
    return found
