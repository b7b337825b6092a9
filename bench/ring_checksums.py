"""What does a checksum over the records in the ring cost: sealed by the agent's thread, or made in each write?

Writes 10^6 records four ways in turn, five rounds, and prints CPU time a record: without a checksum; sealed in
batches as the agent does it (``wire.seals``: what the writer pays, and what the agent's thread pays); with a CRC-32
in each write; with a weighted sum of the fields in each write. The last two live here alone: they were not taken
(decision 0123).
"""

from __future__ import annotations

import itertools
import statistics
import struct
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.wire.ring import HEADER_BYTES, RECORD, RECORD_BYTES, SEQ_MASK, RingWriter, make_write
from stepscope.wire.seals import Sealer

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.wire.ring import Write

RECORDS = 1_000_000
SLOTS = 1_250_000
ROUNDS = 5
BATCH = 1_800
"""Records between two seals of a job that writes 4,000 a second, the most that the governor lets through."""
CRC = struct.Struct("<H")
RESERVED_AT = 34


def with_crc(buffer: bytearray, claim: Callable[[], int]) -> Write:
    """A write that stores 16 bits of the CRC-32 of each record in its reserved field."""
    view, pack, crc32, put = memoryview(buffer), RECORD.pack_into, zlib.crc32, CRC.pack_into

    def write(start_ns: int, dur_ns: int, arg: int, name: int, kind: int, flags: int, thread: int) -> None:
        index = claim()
        at = HEADER_BYTES + index % SLOTS * RECORD_BYTES
        pack(buffer, at, start_ns, dur_ns, arg, name, kind, flags, thread, 0, (index + 1) & SEQ_MASK)
        put(buffer, at + RESERVED_AT, crc32(view[at : at + RESERVED_AT]) & 0xFFFF)

    return write


def with_sum(buffer: bytearray, claim: Callable[[], int]) -> Write:
    """A write that stores a weighted sum of the fields modulo a prime in the reserved field."""
    pack = RECORD.pack_into

    def write(start_ns: int, dur_ns: int, arg: int, name: int, kind: int, flags: int, thread: int) -> None:
        index = claim()
        total = start_ns + 3 * dur_ns + 5 * arg + 7 * name + 11 * kind + 13 * flags + 17 * thread
        at = HEADER_BYTES + index % SLOTS * RECORD_BYTES
        pack(buffer, at, start_ns, dur_ns, arg, name, kind, flags, thread, total % 65_521, (index + 1) & SEQ_MASK)

    return write


def plain(buffer: bytearray, claim: Callable[[], int]) -> Write:
    """The agent's write."""
    return make_write(buffer, SLOTS, claim)[0]


def written(make: Callable[[bytearray, Callable[[], int]], Write]) -> float:
    """Ns of CPU time a record."""
    write = make(bytearray(HEADER_BYTES + SLOTS * RECORD_BYTES), itertools.count().__next__)
    began = time.thread_time_ns()
    for number in range(RECORDS):
        write(number * 700, 350, number, 17, 3, 0, 1)
    return (time.thread_time_ns() - began) / RECORDS


def in_ring(folder: str, *, seal: bool) -> tuple[float, float]:
    """Ns of CPU time a record in a mapped ring, of the writer and of the seals."""
    path = Path(folder, "ring")
    ring = RingWriter(str(path), SLOTS)
    sealer, seals, writes = Sealer(ring), 0, 0
    for first in range(0, RECORDS, BATCH):
        began = time.thread_time_ns()
        for number in range(first, min(first + BATCH, RECORDS)):
            ring.write(number * 700, 350, number, 17, 3, 0, 1)
        between = time.thread_time_ns()
        if seal:
            sealer.seal()
        writes += between - began
        seals += time.thread_time_ns() - between
    path.unlink()
    return writes / RECORDS, seals / RECORDS


def main() -> None:
    """Print the medians."""
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            writer, thread = in_ring(folder, seal=True)
            found = {"in a ring": in_ring(folder, seal=False)[0], "sealed, writer": writer, "sealed, thread": thread}
            found |= {"in memory": written(plain)}
            found |= {"CRC-32 in each write": written(with_crc), "sum in each write": written(with_sum)}
            for name, value in found.items():
                rows.setdefault(name, []).append(value)
    for name, values in rows.items():
        print(f"{name:22} {statistics.median(values):6.0f} ns  ({min(values):.0f} to {max(values):.0f})")


if __name__ == "__main__":
    main()
