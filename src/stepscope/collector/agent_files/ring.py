"""Reads the agents' rings (layout: ``stepscope.wire.ring``) into numpy arrays, and counts what was lost.

The writer stores no cursor: a slot is complete if its sequence number matches its index, so the ring ends where the
numbers stop matching. Missing records are counted, never invented: records that the writer overwrote before they were
read (``lost``), slots that were claimed but never completed (``torn``), and batches whose bytes are not those that the
agent sealed (``damaged``, see ``wire.seals``). Their place in the stream stays empty, which says when that was.

Of a writer that seals, only sealed records are taken while it lives: the newest wait for their seal,
``SEAL_PATIENCE_NS`` at most. What comes without one (the last half second of a killed process) is taken as it is.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from stepscope.tables.errors import CaptureError
from stepscope.wire import seals
from stepscope.wire.kinds import Kind
from stepscope.wire.ring import (
    DOING_OFFSET,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    READER_OFFSET,
    RECORD_BYTES,
    UNCOMMITTED,
    UNCOMMITTED_KINDS,
    UNCOMMITTED_OFFSET,
    VERSION,
)

RECORD_DTYPE = np.dtype(
    [
        ("start_ns", "<i8"),
        ("dur_ns", "<i8"),
        ("arg", "<i8"),
        ("name", "<u4"),
        ("kind", "<u2"),
        ("flags", "<u2"),
        ("thread", "<u2"),
        ("reserved", "<u2"),
        ("seq", "<u4"),
    ]
)
"""``wire.ring.RECORD`` as a numpy dtype."""

Records = npt.NDArray[Any]
"""Structured array of ``RECORD_DTYPE``."""

_FIRST_CHUNK = 256
_MAX_CHUNK = 65_536
_LOOKAHEAD = 1_024
"""Distance behind a hole within which complete records are looked for: fewer threads than this write at once."""
HOLE_PATIENCE_NS = 1_000_000_000
"""Time that a claimed slot may stay open while its thread waits for the GIL; after it the slot counts as torn."""
SEAL_PATIENCE_NS = 1_500_000_000
"""Time that the newest records wait for their seal; after it the agent's thread does not run, and they are taken."""
_OVERRUN_MARGIN = 4_096
"""Distance kept from the writer when reading resumes after an overrun, so that it does not overtake the copy."""
_SEQ_MODULUS = 1 << 32


class RingHeader(Struct, frozen=True, kw_only=True):
    """The first page of a ring. ``start_ns`` is CLOCK_MONOTONIC."""

    slots: int
    pid: int
    reader: int
    start_ns: int


class Batch(Struct, frozen=True, kw_only=True):
    """Records read at once. ``indexes`` int64[record]: their position in the stream, from 0, rising."""

    records: Records
    indexes: npt.NDArray[np.int64]
    lost: int = 0
    torn: int = 0
    damaged: int = 0


def read_header(data: bytes | mmap.mmap, path: str, size: int) -> RingHeader:
    """The header of a ring of ``size`` bytes.

    Raises:
        CaptureError: the file is not a ring, is of another version, or is shorter than it says.
    """
    if size < HEADER_BYTES:
        raise CaptureError(f"{path}: {size} bytes; expected a ring of at least {HEADER_BYTES}")
    magic, version, record, slots, pid, reader, start = HEADER.unpack_from(data, 0)
    if magic != MAGIC:
        raise CaptureError(f"{path}: starts with {magic!r}; expected a ring, {MAGIC!r}")
    if version != VERSION or record != RECORD_BYTES:
        raise CaptureError(
            f"{path}: ring version {version} with records of {record} bytes; "
            f"expected version {VERSION} with {RECORD_BYTES}"
        )
    if slots < 1 or size < HEADER_BYTES + slots * RECORD_BYTES:
        raise CaptureError(f"{path}: {size} bytes; expected {HEADER_BYTES + slots * RECORD_BYTES} for {slots} slots")
    return RingHeader(slots=slots, pid=pid, reader=reader, start_ns=start)


class RingReader:
    """Follows one ring from a given index onwards."""

    def __init__(self, path: str, first: int = 0, *, writable: bool = True) -> None:
        """Map the ring at ``path``; the first record read is number ``first``.

        Args:
            path: the ring file.
            first: index of the first record wanted; earlier ones are durable already.
            writable: whether ``mark_durable`` will be called.

        Raises:
            CaptureError: the file is not a ring of this version.
            OSError: the file cannot be opened.
        """
        fd = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            if size < HEADER_BYTES:
                raise CaptureError(f"{path}: {size} bytes; expected a ring of at least {HEADER_BYTES}")
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._map = mmap.mmap(fd, size, access=access)
        finally:
            os.close(fd)
        self.path = path
        self.header = read_header(self._map, path, size)
        self._slots = self.header.slots
        self._ring: Records = np.frombuffer(self._map, RECORD_DTYPE, self._slots, HEADER_BYTES)
        self._seq = self._ring["seq"]
        self.cursor = first
        self.lost = 0
        """Total number of records that were overwritten before they were read."""
        self.torn = 0
        """Total number of slots that were claimed and never completed."""
        self.damaged = 0
        """Total number of records of batches whose bytes are not those that were sealed."""
        self._hole_since = self._unsealed_since = -1
        self._untold_taken = False

    def drain(self, now_ns: int, *, final: bool = False) -> Batch:
        """All complete records from the cursor onwards.

        A hole (a claimed slot followed by complete ones) is waited for until ``HOLE_PATIENCE_NS`` have passed, or not
        at all if ``final`` says that the writer is dead.

        Cost: one comparison if nothing is new; otherwise about 60 ns per record.
        """
        lost, torn, damaged = self.lost, self.torn, self.damaged
        parts: list[Records] = []
        indexes: list[npt.NDArray[np.int64]] = []
        chunk = _FIRST_CHUNK
        sealed = seals.read(self._map, self.cursor)
        until = None if final else self._taken_until(sealed, now_ns)
        budget = self._slots
        while budget > 0 and (until is None or self.cursor < until):
            piece, full = self._run_of_complete(min(chunk, budget if until is None else until - self.cursor))
            if len(piece):
                parts.append(piece)
                indexes.append(np.arange(self.cursor, self.cursor + len(piece), dtype=np.int64))
                self.cursor += len(piece)
                budget -= len(piece)
                self._hole_since = -1
                if not self._still_there(self.cursor - len(piece)):
                    parts.pop()
                    indexes.pop()
                    self.lost += len(piece)
                    self._resynchronise()
                    continue
            if full:
                chunk = min(2 * chunk, _MAX_CHUNK)
                continue
            if self._overrun():
                self._resynchronise()
                continue
            ahead = self._first_complete_ahead()
            if not ahead or not self._give_up_hole(now_ns, final=final):
                break
            self.torn += ahead
            self.cursor += ahead
        records = np.concatenate(parts) if parts else np.empty(0, RECORD_DTYPE)
        places = np.concatenate(indexes) if indexes else np.empty(0, np.int64)
        whole = self._as_sealed(records, places, sealed)
        return Batch(
            records=records[whole],
            indexes=places[whole],
            lost=self.lost - lost,
            torn=self.torn - torn,
            damaged=self.damaged - damaged,
        )

    def _taken_until(self, sealed: list[tuple[int, int, int]], now_ns: int) -> int | None:
        """Index of the first record that waits for its seal; None: none waits."""
        if sealed:
            self._unsealed_since = -1
            first, count, _ = sealed[-1]
            return first + count
        nothing = int(self._seq[self.cursor % self._slots]) != (self.cursor + 1) % _SEQ_MODULUS
        if nothing or not seals.read(self._map, 0):  # of an agent without a thread no record is sealed
            return None
        if self._unsealed_since < 0:
            self._unsealed_since = now_ns
        waited = now_ns - self._unsealed_since >= SEAL_PATIENCE_NS
        return None if waited else self.cursor

    def _as_sealed(
        self, records: Records, indexes: npt.NDArray[np.int64], sealed: list[tuple[int, int, int]]
    ) -> npt.NDArray[np.bool_]:
        """Which records are not of a damaged batch. A batch that was not read whole cannot be compared."""
        good = np.ones(len(records), np.bool_)
        for first, count, crc in sealed:
            a, b = np.searchsorted(indexes, (first, first + count)).tolist()
            if b - a == count and zlib.crc32(records[a:b].view(np.uint8).data) != crc:
                good[a:b] = False
                self.damaged += count
        return good

    def _run_of_complete(self, count: int) -> tuple[Records, bool]:
        """A copy of the complete records from the cursor onwards, at most ``count``, and whether there may be more."""
        at = self.cursor % self._slots
        if int(self._seq[at]) != (self.cursor + 1) % _SEQ_MODULUS:
            return self._ring[:0], False
        count = min(count, self._slots - at)
        expected = np.arange(self.cursor + 1, self.cursor + 1 + count, dtype=np.int64).astype(np.uint32)
        good = self._seq[at : at + count] == expected
        run = count if good.all() else int(good.argmin())
        return self._ring[at : at + run].copy(), run == count

    def _still_there(self, first: int) -> bool:
        """Whether the writer did not reach record ``first`` again while it was copied.

        The writer fills slots in order and writes each sequence number last, so ``first`` may be half overwritten only
        if the record before it is already of the next lap.
        """
        before = int(self._seq[(first - 1) % self._slots])
        if before == (first + self._slots) % _SEQ_MODULUS:
            return False
        return int(self._seq[first % self._slots]) == (first + 1) % _SEQ_MODULUS

    def _ahead_of_cursor(self, seq: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Distance of sequence numbers from the cursor's own, modulo 2**32, in -2**31..2**31."""
        distance = (seq.astype(np.int64) - (self.cursor + 1)) % _SEQ_MODULUS
        return np.where(distance >= _SEQ_MODULUS // 2, distance - _SEQ_MODULUS, distance)

    def _overrun(self) -> bool:
        """Whether the writer has filled the cursor's slot again."""
        at = self.cursor % self._slots
        near = self._seq[np.arange(at - 1, at + 2) % self._slots]
        return bool(near[1] != 0 and _in_a_row(near)[1] and self._ahead_of_cursor(near)[1] > 0)

    def _resynchronise(self) -> None:
        """Resume at the oldest record that is safe to read, after the writer has overtaken the reader."""
        seq = self._seq.copy()
        ahead = self._ahead_of_cursor(seq)[_in_a_row(seq)]
        head = self.cursor + int(ahead.max(initial=0)) + 1
        oldest = max(self.cursor + 1, head - self._slots + min(_OVERRUN_MARGIN, self._slots // 2))
        self.lost += oldest - self.cursor
        self.cursor = oldest

    def _first_complete_ahead(self) -> int:
        """Distance to the next complete record behind a hole, 0 if there is none."""
        count = min(_LOOKAHEAD, self._slots)
        indexes = self.cursor + np.arange(1, count, dtype=np.int64)
        good = self._seq[indexes % self._slots] == (indexes + 1).astype(np.uint32)
        return int(good.argmax()) + 1 if good.any() else 0

    def _give_up_hole(self, now_ns: int, *, final: bool) -> bool:
        if final:
            return True
        if self._hole_since < 0:
            self._hole_since = now_ns
        return now_ns - self._hole_since >= HOLE_PATIENCE_NS

    def doing(self) -> int:
        """What the process does at this moment, as ``wire.doing.Doing``; a number that is none of these is possible."""
        return int.from_bytes(self._map[DOING_OFFSET : DOING_OFFSET + 8], "little")

    def take_untold(self, now_ns: int) -> Batch:
        """REST records for calls that a dead writer had counted and not yet reported; empty the second time."""
        since, *counts = UNCOMMITTED.unpack_from(self._map, UNCOMMITTED_OFFSET)
        if self._untold_taken or not since or since > now_ns:
            return Batch(records=np.empty(0, RECORD_DTYPE), indexes=np.empty(0, np.int64))
        self._untold_taken = True
        half = len(UNCOMMITTED_KINDS)
        calls = {
            kind: now - then for kind, now, then in zip(UNCOMMITTED_KINDS, counts[:half], counts[half:], strict=True)
        }
        told = [(kind, max(0, count)) for kind, count in calls.items() if count > 0 or kind == Kind.EXECUTION]
        records = np.zeros(len(told), RECORD_DTYPE)
        records["start_ns"], records["dur_ns"] = since, now_ns - since
        records["kind"] = Kind.REST
        records["arg"] = [count for _, count in told]
        records["flags"] = [int(kind) << 8 for kind, _ in told]
        indexes = np.arange(self.cursor, self.cursor + len(told), dtype=np.int64)
        self.cursor += len(told)
        return Batch(records=records, indexes=indexes)

    def forget_untold(self) -> None:
        """Confirm that the records of ``take_untold`` are durable."""
        if self._untold_taken:
            UNCOMMITTED.pack_into(self._map, UNCOMMITTED_OFFSET, *([0] * (1 + 2 * len(UNCOMMITTED_KINDS))))

    def mark_durable(self, count: int) -> None:
        """Publish that the first ``count`` records are on disk."""
        struct.pack_into("<Q", self._map, READER_OFFSET, count)

    def close(self) -> None:
        """Unmap."""
        del self._ring, self._seq
        self._map.close()


def _in_a_row(seq: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Which sequence numbers follow the one before them or are followed by the one after. Slots are filled in order:
    any other is damaged.
    """
    follows = seq == np.roll(seq, 1) + np.uint32(1)
    found: npt.NDArray[np.bool_] = follows | np.roll(follows, -1)
    return found
