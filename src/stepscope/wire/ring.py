"""The ring file: one page of header, then a power-free number of fixed records.

Layout (little endian)::

    0    8s  magic b"STEPRING"
    8    I   version
    12   I   record size
    16   Q   slots
    24   Q   pid
    32   Q   reader: how many records the reader has made durable (written by the reader)
    40   Q   start_ns: CLOCK_MONOTONIC when the ring was made
    64   Q   untold_ns: since when calls have only been counted, without a REST record that says so; 0: they are not
    72   4Q  calls that were only counted so far, one number for each of UNCOMMITTED_KINDS
    104  4Q  the same as they were at untold_ns
    4096 ... slots x record

A record's last field is its sequence number, 1 + index, low 32 bits, written last: a slot is complete
when it holds the number that its index calls for. There is no write cursor to keep: the reader finds the
end by the sequence numbers. Writers are threads of one process under one GIL; a forked child must never
write here (it makes a ring of its own).

What the reader must know: a writer claims its index and may then lose the GIL, so that for some milliseconds a
slot is behind its successors; a kill in that moment leaves it so for ever. The writer never waits for the reader:
what was overwritten is counted by the reader, as the distance of the sequence numbers. A record that was copied
while it was overwritten is recognised by reading its sequence number again after the copy.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import sys
import time

from stepscope.wire.kinds import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, Union

    Buffer = Union[bytearray, mmap.mmap]
    Write = Callable[[int, int, int, int, int, int, int], None]
    Tap = Callable[[int, int, int, int, int, int, int], object]
    Pack = Callable[..., None]

MAGIC = b"STEPRING"
VERSION = 1
HEADER_BYTES = 4096
RECORD = struct.Struct("<qqqIHHHHI")
"""start_ns, dur_ns, arg, name, kind, flags, thread, reserved, seq."""
RECORD_BYTES = RECORD.size
_KIND_AT = (HEADER_BYTES + 28) // 2
_RECORD_STEP = RECORD_BYTES // 2
"""Where the first kind stands, and how far the next, in numbers of two bytes."""
HEADER = struct.Struct("<8sIIQQQQ")
READER_OFFSET = 32
UNCOMMITTED_OFFSET = 64
UNCOMMITTED = struct.Struct("<9Q")
UNCOMMITTED_KINDS = (Kind.EXECUTION, Kind.FUNCTION, Kind.MODEL_CALL, Kind.NEXT)
"""Kinds whose calls are counted while wrappers rest: what a process has counted is not lost with it."""
DEFAULT_SLOTS = 1_250_000
"""60 s at 20,000 records a second (DESIGN 3)."""
MIN_SLOTS = 8_192
SEQ_MASK = 0xFFFFFFFF
_LIMITS = ((1 << 63) - 1, (1 << 32) - 1, (1 << 16) - 1)


class RingFullError(OSError):
    """No place for even the smallest ring."""


class RingWriter:
    """The job's end. ``write`` is the hot path; it is an attribute, not a method, to save a lookup."""

    def __init__(self, path: str, slots: int = DEFAULT_SLOTS) -> None:
        """Make and fully allocate the file: a sparse map on a full disk would kill the job with SIGBUS.

        Tries ever smaller rings down to ``MIN_SLOTS``. The file gets its name when it is complete.

        Raises:
            RingFullError: not even the smallest ring could be allocated.
        """
        self.path = path
        making = path + ".new"
        fd = os.open(making, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.slots = _allocate(fd, slots)
            self.buffer = _map(fd, HEADER_BYTES + self.slots * RECORD_BYTES)
            HEADER.pack_into(
                self.buffer, 0, MAGIC, VERSION, RECORD_BYTES, self.slots, os.getpid(), 0, time.monotonic_ns()
            )
            os.rename(making, path)
        except BaseException:
            os.unlink(making)
            raise
        finally:
            os.close(fd)
        self.uncommitted = memoryview(self.buffer)[UNCOMMITTED_OFFSET : UNCOMMITTED_OFFSET + UNCOMMITTED.size].cast("Q")
        """``untold_ns`` and the counts beside it."""
        self._counter = itertools.count()
        self.claim: Callable[[], int] = self._counter.__next__
        """The next index; each is given once, to whichever thread asks."""
        self.write, self.rebind = make_write(self.buffer, self.slots, self.claim)

    def written(self) -> int:
        """How many records were claimed so far."""
        return int(repr(self._counter)[6:-1])

    def newest_kinds(self, count: int) -> list[int]:
        """Kinds of the newest ``count`` records, oldest first."""
        end = self.written()
        begin = max(0, end - min(count, self.slots))
        first, last = begin % self.slots, end % self.slots
        parts = [(first, last)] if first < last or begin == end else [(first, self.slots), (0, last)]
        with memoryview(self.buffer) as whole, whole.cast("H") as numbers:
            kinds: list[int] = []
            for a, b in parts:  # sliced, not unpacked one by one: ten times a second it would be most of a tick
                kinds += numbers[_KIND_AT + a * _RECORD_STEP : _KIND_AT + b * _RECORD_STEP : _RECORD_STEP].tolist()
        return kinds


def _map(fd: int, size: int) -> mmap.mmap:
    """Map the file; from Python 3.13 on without a second descriptor, which would take a number from the job."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, size, mmap.MAP_SHARED, protection, trackfd=False)
    return mmap.mmap(fd, size, mmap.MAP_SHARED, protection)


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


class Entry:
    """Calls of one name, kind and thread that were counted instead of written."""

    __slots__ = ("calls", "counted", "first_ns", "kind", "name", "reported", "reported_ns", "thread", "total_ns")

    def __init__(self, name: int, kind: int, thread: int) -> None:
        self.name = name
        self.kind = kind
        self.thread = thread
        self.calls = self.counted = self.reported = 0
        self.total_ns = self.reported_ns = self.first_ns = 0


def count_key(name: int, kind: int, thread: int) -> int:
    """The key of an entry; an integer, because a tuple would cost more than the counting."""
    return (name << 16 | thread) << 8 | kind


def new_entry(key: int) -> Entry:
    """The entry that belongs to a ``count_key``."""
    return Entry(key >> 24, key & 0xFF, key >> 8 & 0xFFFF)


class Thinning:
    """How records are thinned: of the kinds in ``kinds`` every ``every``-th is written, the rest is counted.

    Records that carry one of the flags ``always`` are written whatever happens; thinned ones get the flag ``mark``.
    """

    __slots__ = ("always", "entries", "every", "kinds", "mark")

    def __init__(self, entries: dict[int, Entry], every: int, kinds: frozenset[int], always: int, mark: int) -> None:
        self.entries = entries
        self.every = every
        self.kinds = kinds
        self.always = always
        self.mark = mark


def make_write(buffer: Buffer, slots: int, claim: Callable[[], int]) -> tuple[Write, Callable[..., None]]:
    """Build the hot path as closures over cells (speed): ``write`` and the ``rebind`` that moves it elsewhere.

    Callers keep ``write`` for ever; after a fork, or when the record rate is too high, ``rebind(buffer, slots,
    claim, thinning, pack)`` changes what is behind it (``pack``: see ``tapped``). ``claim`` gives the index and may
    itself call ``rebind``: ``buffer`` and ``slots`` are read after it.

    ``write(start_ns, dur_ns, arg, name, kind, flags, thread)`` never raises an error of its own; values out of
    range are clamped. An interrupt that arrives inside passes through, after the claimed slot has been filled.
    """
    pack_into = fill = RECORD.pack_into
    size = RECORD_BYTES
    base = HEADER_BYTES
    mask = SEQ_MASK
    thinning: Thinning | None = None

    def write(start_ns: int, dur_ns: int, arg: int, name: int, kind: int, flags: int, thread: int) -> None:
        index = -1
        try:
            if thinning is not None and kind in thinning.kinds and not flags & thinning.always:
                key = (name << 16 | thread) << 8 | kind
                entry = thinning.entries.get(key)
                if entry is None:
                    entry = thinning.entries[key] = new_entry(key)
                entry.calls += 1
                if entry.calls % thinning.every:
                    if entry.counted == entry.reported:
                        entry.first_ns = start_ns
                    entry.counted += 1
                    entry.total_ns += dur_ns
                    return
                flags |= thinning.mark
            index = claim()
            pack_into(
                buffer,
                base + index % slots * size,
                start_ns,
                dur_ns,
                arg,
                name,
                kind,
                flags,
                thread,
                0,
                (index + 1) & mask,
            )
        except BaseException as error:  # the claimed slot must be filled whatever happened: a hole stops the reader
            if index >= 0:
                values = _clamped((start_ns, dur_ns, arg), name, (kind, flags, thread))
                fill(buffer, base + index % slots * size, *values, 0, (index + 1) & mask)
            if not isinstance(error, Exception):
                raise

    def rebind(
        new_buffer: Buffer,
        new_slots: int,
        new_claim: Callable[[], int],
        new_thinning: Thinning | None,
        new_pack: Pack = RECORD.pack_into,
    ) -> None:
        nonlocal buffer, slots, claim, thinning, pack_into
        buffer, slots, claim, thinning, pack_into = new_buffer, new_slots, new_claim, new_thinning, new_pack

    return write, rebind


def tapped(tap: Optional[Tap]) -> Pack:
    """What packs a record and then calls ``tap`` with its fields; with None, what only packs."""
    pack_into = RECORD.pack_into
    if tap is None:
        return pack_into

    def pack(buffer: Buffer, place: int, *values: int) -> None:
        pack_into(buffer, place, *values)
        tap(*values[:7])

    return pack


def _clamped(longs: tuple[int, ...], name: int, shorts: tuple[int, ...]) -> list[int]:
    """The fields of a record, each an integer within its width; 0 for what is no number."""
    long_max, name_max, short_max = _LIMITS
    bounds = [(value, -long_max, long_max) for value in longs]
    bounds.append((name, 0, name_max))
    bounds.extend((value, 0, short_max) for value in shorts)
    out = []
    for value, low, high in bounds:
        try:
            out.append(min(max(int(value) if isinstance(value, (int, float)) else 0, low), high))
        except (ValueError, OverflowError):
            out.append(0)
    return out
