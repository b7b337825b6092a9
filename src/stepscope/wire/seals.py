"""Checksums of the records in a ring, so that the reader knows its copy to be what the agent wrote.

The agent's thread *seals* a batch: the complete records since the last seal, by the CRC-32 of their bytes in the ring.
``write`` has no part in it: a checksum of each record would cost it half of its time again (decision 0123). The newest
``SEALS`` seals lie in the ring's header::

    SEALS_OFFSET + (number of the seal % SEALS) x SEAL:
    0    Q   first: index of the first record
    8    I   count: number of records, 0: no seal
    12   I   CRC-32 of these records, in the order of their indexes
    16   I   CRC-32 of the 16 bytes before

A seal that is half written or damaged itself does not match its own checksum, and is none.
"""

from __future__ import annotations

import struct
import zlib

from stepscope.wire.ring import HEADER_BYTES, MAX_UNWRITTEN, RECORD_BYTES, SEALS_OFFSET, SEQ_MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Union

    from stepscope.wire.ring import RingWriter


SEAL = struct.Struct("<QIII")
SEALS = 128
"""With a seal every ``EVERY_NS`` they cover the last minute; a collector looks every two seconds."""
EVERY_NS = 450_000_000
_AT_ONCE = 128
"""Records whose bytes are given to ``zlib`` at once: for more than 5 KiB it would give the interpreter's lock away, and
the job would have to hand it back."""
_LOOKED_AT = 4_096
"""Records whose sequence numbers are looked at at once: a list of all would hold the lock for long after a rest."""
_HEAD = struct.Struct("<QII")
_STEP = RECORD_BYTES // 4
_SEQ_AT = HEADER_BYTES // 4 + _STEP - 1
"""Position of the first sequence number in units of four bytes; ``_STEP`` is the distance between two."""


class Sealer:
    """Seals the records of one ring; one thread at a time."""

    def __init__(self, ring: RingWriter) -> None:
        """Begin with the first record of ``ring``."""
        self._ring = ring
        self._bytes = memoryview(ring.buffer)
        self._numbers = self._bytes.cast("I")
        self._made = self._sealed = self._last_ns = 0

    def tick(self, now_ns: int) -> None:
        """Seal what was written since the last seal, if that is ``EVERY_NS`` ago."""
        if now_ns - self._last_ns >= EVERY_NS:
            self._last_ns = now_ns
            self.seal()

    def seal(self) -> None:
        """Seal the complete records since the last seal, up to one that another thread has claimed and not written.

        A slot left so by more than ``MAX_UNWRITTEN`` records is passed over. Of more than half a ring the oldest
        records stay without a seal: they may be overwritten while the checksum is computed.
        """
        end = self._ring.written()
        first = max(self._sealed, end - self._ring.slots // 2)
        if first < end:
            count = self._complete(first, end)
            if count:
                self._write(first, count)
            self._sealed = first + (count or int(end - first > MAX_UNWRITTEN))

    def _complete(self, first: int, end: int) -> int:
        """How many records from ``first`` on are complete."""
        at = first
        for a, b in self._places(first, end - first):
            for begin in range(a, b, _LOOKED_AT):
                until = min(begin + _LOOKED_AT, b)
                found = self._numbers[_SEQ_AT + begin * _STEP : _SEQ_AT + until * _STEP : _STEP].tolist()
                wanted = range(at + 1, at + 1 + len(found))
                if at + len(found) > SEQ_MASK or found != list(wanted):
                    wrong = (i for i, number in enumerate(found) if number != (at + 1 + i) & SEQ_MASK)
                    hole = next(wrong, len(found))
                    if hole < len(found):
                        return at + hole - first
                at += len(found)
        return end - first

    def _write(self, first: int, count: int) -> None:
        crc = 0
        for a, b in self._places(first, count):
            for at in range(a, b, _AT_ONCE):
                end = HEADER_BYTES + min(at + _AT_ONCE, b) * RECORD_BYTES
                crc = zlib.crc32(self._bytes[HEADER_BYTES + at * RECORD_BYTES : end], crc)
        head = _HEAD.pack(first, count, crc)
        place = SEALS_OFFSET + self._made % SEALS * SEAL.size
        SEAL.pack_into(self._ring.buffer, place, first, count, crc, zlib.crc32(head))
        self._made += 1

    def _places(self, first: int, count: int) -> list[tuple[int, int]]:
        """The slots of ``count`` records from ``first`` on, as one or two ranges."""
        slots = self._ring.slots
        at = first % slots
        if at + count <= slots:
            return [(at, at + count)]
        return [(at, slots), (0, at + count - slots)]


def read(header: Union[bytes, mmap.mmap], since: int) -> list[tuple[int, int, int]]:
    """(first, count, crc) of the whole seals in a ring's header with records from index ``since`` on, in order."""
    found = []
    for number in range(SEALS):
        place = SEALS_OFFSET + number * SEAL.size
        first, count, crc, own = SEAL.unpack_from(header, place)
        if count and first + count > since and own == zlib.crc32(header[place : place + _HEAD.size]):
            found.append((first, count, crc))
    return sorted(found)
