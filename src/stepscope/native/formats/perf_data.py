"""Reads ``perf.data`` as ``perf record -o FILE`` writes it: samples with registers and stack, mappings, thread names.

An own reader, because ``perf script`` takes 8 CPU-seconds to load TensorFlow's symbols before its first line. Not
supported: pipe output, compressed files, hardware traces, branch stacks. Times are those of the clock given to perf.

Source: linux/tools/perf/Documentation/perf.data-file-format.txt, perf_event_open(2).
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"PERFILE2"
_HEADER = struct.Struct("<8s8Q4Q")
_ATTR = struct.Struct("<IIQQQQQ")
_ATTR_MORE = struct.Struct("<QIi")
_ATTR_MORE_AT = 80
_RECORD = struct.Struct("<IHH")
_PAIR = struct.Struct("<II")
_U64 = struct.Struct("<Q")
_MMAP2 = struct.Struct("<IIQQQ")
_MMAP2_NAME = 8 + _MMAP2.size + 24 + 8
"""Offset of the name: after device and inode (or build id), protection and flags."""
_MMAP_NAME = 8 + _MMAP2.size
_MMAP, _LOST, _COMM, _EXIT, _THROTTLE, _FORK, _SAMPLE, _MMAP2_TYPE, _LOST_SAMPLES = 1, 2, 3, 4, 5, 7, 9, 10, 13
_COMPRESSED = 81
_MISC_MMAP_DATA = 1 << 13
_EVENT_DESC, _FEATURE_BITS = 12, 256
_MAX_EVENTS = 64
_KERNEL_CONTEXT, _USER_CONTEXT, _FIRST_CONTEXT = 2**64 - 128, 2**64 - 512, 2**64 - 4095
_SAMPLE_ID_ALL = 1 << 18
_DAMAGE = (struct.error, IndexError, ValueError, OverflowError)
"""Errors caused by implausible numbers and offsets."""


class _Bit:
    """Bits of ``sample_type``."""

    IP, TID, TIME, ADDR, READ, CALLCHAIN, ID = 1, 2, 4, 8, 16, 32, 64
    CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK = 128, 256, 512, 1024, 2048
    REGS_USER, STACK_USER, IDENTIFIER = 4096, 8192, 1 << 16


class Event(Struct, frozen=True, kw_only=True):
    """A sampled event. ``period`` is a count, or with ``frequency`` samples per second."""

    name: str
    sample_type: int
    registers: int
    """Mask of the registers in samples."""
    period: int
    frequency: bool


class Sample(NamedTuple):
    """One sample. Addresses are the process's own; 0 if the event does not record them."""

    event: int
    """Index into the events."""
    at_ns: int
    pid: int
    tid: int
    ip: int
    address: int
    """Memory address concerned: for a page fault, the touched address."""
    period: int
    kernel: tuple[int, ...]
    """Return addresses in the kernel, leaf first."""
    user: tuple[int, ...]
    """Return addresses in the process, leaf first, if perf recorded a chain by frame pointers."""
    raw: bytes
    """Fields of a tracepoint."""
    registers: tuple[int, ...]
    """Register values by rising bit of the event's mask; empty if the process was not in user code or gave none."""
    stack: memoryview
    """Top of the stack, from the stack pointer onwards."""


class Mapping(NamedTuple):
    """A new mapping in an address space. Bytes."""

    at_ns: int
    pid: int
    tid: int
    start: int
    size: int
    offset: int
    """Offset in the file."""
    name: str
    data: bool
    """Flag: not executable."""


class Comm(NamedTuple):
    """A thread received a name."""

    at_ns: int
    pid: int
    tid: int
    name: str


class PerfRecording(Struct, frozen=True, kw_only=True):
    """Content of one file, each part in time order."""

    events: tuple[Event, ...]
    samples: list[Sample] = field(default_factory=list)
    mappings: list[Mapping] = field(default_factory=list)
    comms: list[Comm] = field(default_factory=list)
    lost: int = 0
    """Number of samples that the kernel could not store."""
    throttled: int = 0
    """Number of times that the kernel stopped sampling for a while."""
    unread: int = 0
    """Number of damaged records."""


def read(path: str | Path) -> PerfRecording:
    """Read the file at ``path``; ``stack`` of the samples stays a view into it.

    Raises:
        FormatError: it is not a perf file, or of an unsupported kind.
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as stream:
        try:
            data = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
        except ValueError as error:
            raise FormatError(f"{path}: {error}") from error
    return decode(data, str(path))


def decode(data: bytes | mmap.mmap, where: str) -> PerfRecording:
    """Decode bytes like ``read``.

    Raises:
        FormatError: see ``read``.
    """
    try:
        return _Reader(data, where).read()
    except _DAMAGE as error:
        raise FormatError(f"{where}: truncated: {error}; expected a file of `perf record -o FILE`") from error


class _Reader:
    def __init__(self, data: bytes | mmap.mmap, where: str) -> None:
        if data[: len(_MAGIC)] != _MAGIC:
            raise FormatError(f"{where}: not a perf.data file; expected a file of `perf record -o FILE`")
        header = _HEADER.unpack_from(data)
        self._data = data
        self._view = memoryview(data)
        self._where = where
        self._attr_size = header[2]
        self._attrs = (header[3], header[4])
        self._records = (header[5], header[6])
        features = header[9:13]
        self._features = [bit for bit in range(_FEATURE_BITS) if features[bit // 64] >> bit % 64 & 1]
        self._ids: dict[int, int] = {}
        self._trailer = 0
        self._time_at = -1
        self._lost = self._throttled = 0

    def read(self) -> PerfRecording:
        self._found = PerfRecording(events=self._events())
        self._readers = [_sample_reader(index, event) for index, event in enumerate(self._found.events)]
        self._identified = bool(self._found.events[0].sample_type & _Bit.IDENTIFIER)
        unread = 0
        for kind, misc, at, size in self._walk():
            try:
                unread += not self._take(kind, misc, at, size)
            except _DAMAGE:
                unread += 1
        self._found.samples.sort(key=lambda sample: sample.at_ns)
        self._found.mappings.sort(key=lambda mapping: mapping.at_ns)
        self._found.comms.sort(key=lambda comm: comm.at_ns)
        return replace(self._found, lost=self._lost, throttled=self._throttled, unread=unread)

    def _take(self, kind: int, misc: int, at: int, size: int) -> bool:
        """Read one record; False if it is of an event that the file does not describe."""
        if kind == _SAMPLE:
            number = self._ids.get(_U64.unpack_from(self._data, at + 8)[0], -1) if self._identified else 0
            if number < 0:
                return False
            self._found.samples.append(self._readers[number](self._view, at + 8, at + size))
        elif kind in (_MMAP, _MMAP2_TYPE):
            self._found.mappings.append(self._mapping(kind, misc, at, size))
        elif kind == _COMM:
            pid, tid = _PAIR.unpack_from(self._data, at + 8)
            self._found.comms.append(Comm(self._time(at, size), pid, tid, self._text(at + 16, at + size)))
        elif kind in (_LOST, _LOST_SAMPLES):
            self._lost += _U64.unpack_from(self._data, at + (16 if kind == _LOST else 8))[0]
        elif kind == _THROTTLE:
            self._throttled += 1
        elif kind == _COMPRESSED:
            raise FormatError(f"{self._where}: compressed; expected perf record without -z")
        return True

    def _walk(self) -> Iterator[tuple[int, int, int, int]]:
        """(kind, misc, offset, size) of each record. A killed writer leaves the size at 0: read to the end then."""
        at, size = self._records
        end = min(at + size, len(self._data)) if size else len(self._data)
        while at + _RECORD.size <= end:
            kind, misc, length = _RECORD.unpack_from(self._data, at)
            if length < _RECORD.size or at + length > end:
                return
            yield kind, misc, at, length
            at += length

    def _events(self) -> tuple[Event, ...]:
        names = self._names()
        at, size = self._attrs
        count = size // self._attr_size if self._attr_size else 0
        if not 0 < count <= _MAX_EVENTS:
            raise FormatError(f"{self._where}: {count} events; expected 1 to {_MAX_EVENTS}")
        events = []
        for index in range(count):
            start = at + index * self._attr_size
            _, _, _, period, sample_type, _, flags = _ATTR.unpack_from(self._data, start)
            registers, _, _ = _ATTR_MORE.unpack_from(self._data, start + _ATTR_MORE_AT)
            ids_at, ids_size = struct.unpack_from("<QQ", self._data, start + self._attr_size - 16)
            ids = struct.unpack_from(f"<{min(ids_size, len(self._data)) // 8}Q", self._data, ids_at)
            self._ids.update(dict.fromkeys(ids, index))
            name = next((n for first, n in names if first in ids), f"event {index}")
            events.append(
                Event(
                    name=name,
                    sample_type=sample_type,
                    registers=registers,
                    period=period,
                    frequency=bool(flags >> 10 & 1),
                )
            )
            if flags & _SAMPLE_ID_ALL and index == 0:
                self._place_of_time(sample_type)
        return tuple(events)

    def _place_of_time(self, sample_type: int) -> None:
        """Set where records other than samples hold their time: in a trailer of fields that samples have, too."""
        bits = (_Bit.TID, _Bit.TIME, _Bit.ID, _Bit.STREAM_ID, _Bit.CPU, _Bit.IDENTIFIER)
        there = [bit for bit in bits if sample_type & bit]
        self._trailer = 8 * len(there)
        self._time_at = 8 * there.index(_Bit.TIME) if _Bit.TIME in there else -1

    def _names(self) -> list[tuple[int, str]]:
        """(id of one of its counters, name) of each event, if the file says."""
        if _EVENT_DESC not in self._features:
            return []
        table = self._records[0] + self._records[1] + 16 * self._features.index(_EVENT_DESC)
        at = _U64.unpack_from(self._data, table)[0]
        count, attr_size = _PAIR.unpack_from(self._data, at)
        at += 8
        names = []
        for _ in range(min(count, _MAX_EVENTS)):
            at += attr_size
            ids, length = _PAIR.unpack_from(self._data, at)
            at += 8
            name = self._text(at, at + length)
            at += length
            if ids:
                names.append((_U64.unpack_from(self._data, at)[0], name))
            at += 8 * ids
        return names

    def _text(self, start: int, end: int) -> str:
        zero = self._data.find(b"\0", start, end)
        return self._data[start : zero if zero >= 0 else end].decode("utf-8", "replace")

    def _time(self, at: int, size: int) -> int:
        if self._time_at < 0:
            return 0
        value: int = _U64.unpack_from(self._data, at + size - self._trailer + self._time_at)[0]
        return value

    def _mapping(self, kind: int, misc: int, at: int, size: int) -> Mapping:
        pid, tid, start, length, offset = _MMAP2.unpack_from(self._data, at + 8)
        name = self._text(at + (_MMAP2_NAME if kind == _MMAP2_TYPE else _MMAP_NAME), at + size)
        return Mapping(self._time(at, size), pid, tid, start, length, offset, name, bool(misc & _MISC_MMAP_DATA))


class _SampleReader:
    """Parses one event's samples."""

    def __init__(self, index: int, event: Event) -> None:
        kinds = event.sample_type
        self._index = index
        self._kinds = kinds
        names: list[str] = []
        fields = (
            (_Bit.IDENTIFIER, "identifier"),
            (_Bit.IP, "ip"),
            (_Bit.TID, "tid"),
            (_Bit.TIME, "time"),
            (_Bit.ADDR, "address"),
            (_Bit.ID, "id"),
            (_Bit.STREAM_ID, "stream"),
            (_Bit.CPU, "cpu"),
            (_Bit.PERIOD, "period"),
        )
        names = [name for bit, name in fields if kinds & bit]
        self._fixed = struct.Struct(f"<{len(names)}Q")
        self._at = {name: i for i, name in enumerate(names)}
        self._registers = struct.Struct(f"<{event.registers.bit_count()}Q")
        self._default_period = 0 if event.frequency else event.period

    def __call__(self, view: memoryview, at: int, end: int) -> Sample:
        kinds = self._kinds
        fixed = self._fixed.unpack_from(view, at)
        at += self._fixed.size
        place = self._at

        def value(name: str, default: int = 0) -> int:
            return int(fixed[place[name]]) if name in place else default

        kernel: tuple[int, ...] = ()
        user: tuple[int, ...] = ()
        raw = b""
        registers: tuple[int, ...] = ()
        stack = view[0:0]
        if kinds & _Bit.CALLCHAIN:
            count = _U64.unpack_from(view, at)[0]
            if at + 8 + 8 * count > end:
                raise IndexError(count)
            kernel, user = _split(struct.unpack_from(f"<{count}Q", view, at + 8))
            at += 8 + 8 * count
        if kinds & _Bit.RAW:
            size = struct.unpack_from("<I", view, at)[0]
            raw = bytes(view[at + 4 : at + 4 + size])
            at += 4 + size
        if kinds & _Bit.REGS_USER:
            abi = _U64.unpack_from(view, at)[0]
            at += 8
            if abi:
                registers = self._registers.unpack_from(view, at)
                at += self._registers.size
        if kinds & _Bit.STACK_USER:
            size = _U64.unpack_from(view, at)[0]
            if size:
                used = min(size, _U64.unpack_from(view, at + 8 + size)[0])
                stack = view[at + 8 : at + 8 + used]
        thread = value("tid")
        return Sample(
            self._index,
            value("time"),
            thread & 0xFFFFFFFF,
            thread >> 32,
            value("ip"),
            value("address"),
            value("period", self._default_period),
            kernel,
            user,
            raw,
            registers,
            stack,
        )


_sample_reader = _SampleReader


def _split(chain: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The kernel's and the process's part of a chain, without perf's markers between them."""
    kernel: list[int] = []
    user: list[int] = []
    part = user
    for address in chain:
        if address == _KERNEL_CONTEXT:
            part = kernel
        elif address == _USER_CONTEXT:
            part = user
        elif address < _FIRST_CONTEXT:
            part.append(address)
    return tuple(kernel), tuple(user)
