"""The ring file: one page of header, then fixed-size records in any number, not only a power of two.

Layout (little endian)::

    0    8s  magic b"STEPRING"
    8    I   version
    12   I   record size
    16   Q   slots
    24   Q   pid
    32   Q   reader: number of records made durable (written by the reader)
    40   Q   start_ns: CLOCK_MONOTONIC when the ring was made
    64   Q   untold_ns: start of counting without a REST record so far; 0: calls are not being counted
    72   8Q  number of calls only counted so far, for each of UNCOMMITTED_KINDS
    136  8Q  the same numbers at untold_ns
    200  Q   what the process does at this moment, a ``wire.doing.Doing``
    512  ... checksums of records, ``wire.seals``
    4096 ... slots x record

A record's last field is its sequence number, 1 + index, low 32 bits, written last: a slot is complete if it holds the
number that matches its index. There is no write cursor: the reader finds the end by the sequence numbers. Writers are
threads of one process under one GIL; a forked child must never write here (it makes its own ring).

For the reader: a writer claims its index and may then lose the GIL, so that for some milliseconds a slot is behind its
successors; a kill in that moment leaves it so forever. The writer never waits for the reader: the reader counts what
was overwritten, as the distance of the sequence numbers. To detect that a record was overwritten while it was copied,
the reader reads its sequence number again after the copy.
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
VERSION = 3
"""Of the layout above: a reader knows one."""
HEADER_BYTES = 4096
RECORD = struct.Struct("<qqqIHHHHI")
"""Fields: start_ns, dur_ns, arg, name, kind, flags, thread, reserved, seq."""
RECORD_BYTES = RECORD.size
_KIND_AT = (HEADER_BYTES + 28) // 2
_RECORD_STEP = RECORD_BYTES // 2
"""Distance between two kinds in units of two bytes; ``_KIND_AT`` is the position of the first."""
HEADER = struct.Struct("<8sIIQQQQ")
READER_OFFSET = 32
UNCOMMITTED_OFFSET = 64
UNCOMMITTED = struct.Struct("<17Q")
UNCOMMITTED_KINDS = (
    Kind.EXECUTION,
    Kind.FUNCTION,
    Kind.MODEL_CALL,
    Kind.GRADIENT,
    Kind.NEXT,
    Kind.SYNC,
    Kind.OP,
    Kind.APPLY,
)
"""Kinds whose calls are counted in the ring during gaps, so that the counts survive the process."""
DOING_OFFSET = UNCOMMITTED_OFFSET + UNCOMMITTED.size
SEALS_OFFSET = 512
DEFAULT_SLOTS = 1_250_000
"""Default size: 60 s at 20,000 records per second (decision 0004)."""
MIN_SLOTS = 8_192
MAKING = ".new"
"""End of the name of a ring that is being made."""
SEQ_MASK = 0xFFFFFFFF
MAX_UNWRITTEN = 1_024
"""A thread claims a slot, then writes it; if it waits for the GIL in between, others may write so many records."""
_FIRST_OWN = 3
"""The first descriptor that is no standard stream."""
_LIMITS = ((1 << 63) - 1, (1 << 32) - 1, (1 << 16) - 1)


class RingFullError(OSError):
    """Raised if there is no place for even the smallest ring."""


class RingWriter:
    """The job's end. ``write`` is the hot path; it is an attribute, not a method, to save a look-up."""

    def __init__(self, path: str, slots: int = DEFAULT_SLOTS, permitted: Callable[[], bool] = lambda: True) -> None:
        """Make and fully allocate the file: a sparse map on a full disk would kill the job with SIGBUS.

        Tries smaller and smaller rings down to ``MIN_SLOTS``. The file gets its name when it is complete. ``permitted``
        is asked when the file has its size but takes no space yet: of several processes that make rings at once, each
        sees all that were permitted before it.

        Raises:
            RingFullError: it was not permitted, or not even the smallest ring could be allocated.
        """
        self.path = path
        making = path + MAKING
        fd = os.open(making, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.slots = _allocate(fd, slots, permitted)
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
        """View of the times and counts that no record says yet."""
        self.doing = memoryview(self.buffer)[DOING_OFFSET : DOING_OFFSET + 8].cast("Q")
        """View of what the process does at this moment."""
        self._counter = itertools.count()
        self.claim: Callable[[], int] = self._counter.__next__
        """Function that returns the next index; each is given once, to whichever thread asks."""
        self.write, self.rebind = make_write(self.buffer, self.slots, self.claim)

    def written(self) -> int:
        """The number of records claimed so far."""
        return int(repr(self._counter)[6:-1])

    def since(self, index: int, most: int) -> tuple[int, list[tuple[int, ...]]]:
        """(index of the next record, fields of the complete records from ``index`` on), the newest ``most`` at most.

        Ends before a record that another thread has claimed and not written yet, so that the next look has it; a slot
        that is left so by more than ``MAX_UNWRITTEN`` records is passed over.
        """
        end = self.written()
        found = []
        for position in range(max(index, end - min(most, self.slots)), end):
            fields = RECORD.unpack_from(self.buffer, HEADER_BYTES + position % self.slots * RECORD_BYTES)
            behind = (position + 1 - fields[-1]) & SEQ_MASK
            if not behind:
                found.append(fields[:7])
            elif behind <= SEQ_MASK // 2 and end - position <= MAX_UNWRITTEN:
                return position, found
        return end, found

    def newest_kinds(self, count: int) -> list[int]:
        """The kinds of the newest ``count`` records, oldest first."""
        end = self.written()
        begin = max(0, end - min(count, self.slots))
        first, last = begin % self.slots, end % self.slots
        parts = [(first, last)] if first < last or begin == end else [(first, self.slots), (0, last)]
        with memoryview(self.buffer) as whole, whole.cast("H") as numbers:
            kinds: list[int] = []
            for a, b in parts:  # sliced, not unpacked one by one: ten times a second that would be most of a tick
                kinds += numbers[_KIND_AT + a * _RECORD_STEP : _KIND_AT + b * _RECORD_STEP : _RECORD_STEP].tolist()
        return kinds


def _map(fd: int, size: int) -> mmap.mmap:
    """Map the file; from Python 3.13 on without a second descriptor, which would take a number from the job."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, size, mmap.MAP_SHARED, protection, trackfd=False)
    held = [os.dup(fd)]
    try:
        while (
            held[-1] < _FIRST_OWN
        ):  # a standard stream is closed: what the job writes there must not get into the ring
            held.append(os.dup(fd))
        return mmap.mmap(fd, size, mmap.MAP_SHARED, protection)
    finally:
        for number in held:
            os.close(number)


def _allocate(fd: int, slots: int, permitted: Callable[[], bool]) -> int:
    os.ftruncate(fd, HEADER_BYTES + slots * RECORD_BYTES)
    if not permitted():
        raise RingFullError("others have taken the room for a ring of %d records" % slots)
    while slots >= MIN_SLOTS:
        try:
            os.posix_fallocate(fd, 0, HEADER_BYTES + slots * RECORD_BYTES)
        except OSError:
            os.ftruncate(fd, 0)
            slots //= 4
        else:
            return slots
    raise RingFullError("no space for a ring of %d records" % MIN_SLOTS)


class CountedCalls:
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


def new_entry(key: int) -> CountedCalls:
    """The entry for a ``count_key``."""
    return CountedCalls(key >> 24, key & 0xFF, key >> 8 & 0xFFFF)


class Thinning:
    """The thinning of records: of the kinds in ``kinds`` every ``every``-th is written, the rest are counted.

    Records with one of the flags ``always`` are always written; thinned ones get the flag ``mark``.
    """

    __slots__ = ("always", "entries", "every", "kinds", "mark")

    def __init__(
        self, entries: dict[int, CountedCalls], every: int, kinds: frozenset[int], always: int, mark: int
    ) -> None:
        self.entries = entries
        self.every = every
        self.kinds = kinds
        self.always = always
        self.mark = mark


def make_write(buffer: Buffer, slots: int, claim: Callable[[], int]) -> tuple[Write, Callable[..., None]]:
    """Build the hot path as closures over cells (speed): ``write`` and the ``rebind`` that moves it elsewhere.

    Callers keep ``write`` forever; after a fork, or when the record rate is too high, ``rebind(buffer, slots, claim,
    thinning, pack)`` changes what is behind it (``pack``: see ``tapped``). ``claim`` gives the index and may itself
    call ``rebind``: ``buffer`` and ``slots`` are read after it.

    ``write(start_ns, dur_ns, arg, name, kind, flags, thread)`` never raises an error of its own; values out of range
    are clamped. An interrupt that arrives inside it passes through, after the claimed slot has been filled.
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
        except BaseException as error:  # the claimed slot must be filled in any case: a hole stops the reader
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
    """A function that packs a record and then calls ``tap`` with its fields; with None, one that only packs."""
    pack_into = RECORD.pack_into
    if tap is None:
        return pack_into

    def pack(buffer: Buffer, place: int, *values: int) -> None:
        pack_into(buffer, place, *values)
        tap(*values[:7])

    return pack


def _clamped(longs: tuple[int, ...], name: int, shorts: tuple[int, ...]) -> list[int]:
    """The fields of a record, each an integer within its width; 0 for anything that is not a number."""
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
