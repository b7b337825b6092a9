"""The distance to the limit of memory in words, for the terminal and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.units import format_bytes, format_ns

if TYPE_CHECKING:
    from stepscope.model.report.machine.memory_room import MemoryRoom

HOST_RATIO = 0.5
"""Share of the host's memory from which its distance is said; that of any other limit always is."""
WHOSE = {
    "host": "the whole host, all its processes",
    "control group": "control group, all its processes",
    "address space": "address space of the process",
    "device": "device, this job's tensors",
}
"""Whose memory is said, by the limit that bounds it."""
MIN_FACTOR = 1.1
"""Factor below which no larger batch is said to fit."""
MOST_FACTOR = 100.0


def items(room: MemoryRoom | None) -> list[str]:
    """``peak 1.4 GiB of 2 GiB (control group)``, what rises, and which batch fits; empty if there is nothing to say."""
    if room is None:
        return []
    said = []
    near = room.peak_bytes >= HOST_RATIO * room.limit_bytes
    if room.limit != "host" or near or room.seconds_left is not None or room.batch_fits:
        of = f"{format_bytes(room.peak_bytes)} of {format_bytes(room.limit_bytes)}"
        said.append(f"peak {of} ({WHOSE[room.limit]})")
    if room.seconds_left is not None:
        bound = format_bytes(room.limit_bytes)
        said.append(f"the process grows: the limit of {bound} is reached in {duration(room.seconds_left)} at this rate")
    said += batch(room)
    return said


def batch(room: MemoryRoom) -> list[str]:
    """``x2.1 of this batch fits: 268 samples (modelled)``."""
    factor = room.factor
    if factor is None:
        return []
    if factor < MIN_FACTOR:
        return [f"no batch much larger than {room.batch:,} samples fits (modelled)"]
    if factor >= MOST_FACTOR:
        return [f"more than x{MOST_FACTOR:.0f} of this batch fits (modelled)"]
    said = f"x{factor:.1f} of this batch fits: {room.batch_fits:,} samples"
    proof = f"; prove it: {room.what_if.partition(' -- ')[0]} -- \u2026" if room.what_if else ""
    return [f"{said} (modelled{proof})"]


def duration(seconds: float) -> str:
    """``12 min``."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return format_ns(seconds * 1e9)
