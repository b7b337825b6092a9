"""The ring file: one page of header, then a power-free number of fixed records.

Layout (little endian)::

    0    8s  magic b"STEPRING"
    8    I   version
    12   I   record size
    16   Q   slots
    24   Q   pid
    32   Q   reader: how many records the reader has made durable (written by the reader)
    40   Q   start_ns: CLOCK_MONOTONIC when the ring was made
    4096 ... slots x record

A record's last field is its sequence number, 1 + index, low 32 bits, written last: a slot is complete
when it holds the number that its index calls for. There is no write cursor to keep: the reader finds the
end by the sequence numbers. Writers are threads of one process under one GIL; a forked child must never
write here (it makes a ring of its own).
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator

MAGIC = b"STEPRING"
VERSION = 1
HEADER_BYTES = 4096
RECORD = struct.Struct("<qqqIHHHHI")
"""start_ns, dur_ns, arg, name, kind, flags, thread, reserved, seq."""
RECORD_BYTES = RECORD.size
HEADER = struct.Struct("<8sIIQQQQ")
READER_OFFSET = 32
DEFAULT_SLOTS = 1_250_000
"""60 s at 20,000 records a second (DESIGN 3)."""
MIN_SLOTS = 8_192
SEQ_MASK = 0xFFFFFFFF


class RingFullError(OSError):
    """No place for even the smallest ring."""


class RingWriter:
    """The job's end. ``write`` is the hot path; it is an attribute, not a method, to save a lookup."""

    def __init__(self, path: str, slots: int = DEFAULT_SLOTS) -> None:
        """Make and fully allocate the file: a sparse map on a full disk would kill the job with SIGBUS.

        Tries ever smaller rings down to ``MIN_SLOTS``.

        Raises:
            RingFullError: not even the smallest ring could be allocated.
        """
        self.path = path
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            self.slots = _allocate(fd, slots)
            size = HEADER_BYTES + self.slots * RECORD_BYTES
            self.buffer = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        HEADER.pack_into(self.buffer, 0, MAGIC, VERSION, RECORD_BYTES, self.slots, os.getpid(), 0, time.monotonic_ns())
        self._counter = itertools.count()
        self.write = _make_write(self.buffer, self.slots, self._counter)

    def written(self) -> int:
        """How many records were claimed so far. Costs one number of the sequence's 32 bits? No: it only peeks."""
        return int(repr(self._counter)[6:-1])


def _allocate(fd: int, slots: int) -> int:
    while slots >= MIN_SLOTS:
        try:
            os.posix_fallocate(fd, 0, HEADER_BYTES + slots * RECORD_BYTES)
        except OSError:
            os.ftruncate(fd, 0)
            slots //= 4
        else:
            return slots
    raise RingFullError("no space for a ring of %d records" % MIN_SLOTS)


def _make_write(
    buffer: mmap.mmap, slots: int, counter: Iterator[int]
) -> Callable[[int, int, int, int, int, int, int], None]:
    """Build ``write(start_ns, dur_ns, arg, name, kind, flags, thread)`` as a closure over locals (speed)."""
    pack_into = RECORD.pack_into
    step = counter.__next__
    size = RECORD_BYTES
    base = HEADER_BYTES
    mask = SEQ_MASK

    def write(start_ns: int, dur_ns: int, arg: int, name: int, kind: int, flags: int, thread: int) -> None:
        index = step()
        pack_into(
            buffer, base + index % slots * size, start_ns, dur_ns, arg, name, kind, flags, thread, 0, (index + 1) & mask
        )

    return write
