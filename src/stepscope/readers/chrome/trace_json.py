"""Chrome trace-event JSON: decoded in pieces of whole events, repaired where parts of it are whole (``trace_repair``),
but not interpreted.

A file is an array of events, or an object that holds one as ``traceEvents``. Its end may be missing: the format allows
a missing ``]``, and a job that dies leaves a cut event, or a gzip stream without its end. ``.gz`` is recognised by its
first bytes. Memory holds a piece at a time; from the first piece that is no array of events, or without an event's end
to divide at, the rest of the file.

Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepscope.readers.chrome import trace_repair
from stepscope.tables import nesting
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

PIECE_BYTES = 4 << 20
"""Size of a piece, packed or not."""
_PART_BYTES = 64 << 10
"""Size of the parts in which a piece is decoded: their events fit into a processor's cache."""
MAX_BYTES = 4 << 30
"""Maximum size after unpacking; larger files are refused."""
_GZIP = b"\x1f\x8b"
_UNENDED = "its gzip stream has no end"

Json = object
"""Any JSON value."""
KINDS = {
    "C": "counters",
    "P": "stack samples",
    "N": "objects",
    "O": "objects",
    "D": "objects",
    "n": "instants of asynchronous events",
    "c": "clock synchronisation",
    "v": "memory dumps",
    "V": "memory dumps",
}
"""Phases of events that are no spans, in words."""


class _Head(msgspec.Struct, frozen=True, gc=False):
    """One event without its arguments, with the fields as the format names them."""

    ph: str = ""
    name: Json = ""
    cat: Json = ""
    ts: Json = None
    dur: Json = None
    tdur: Json = None
    pid: Json = 0
    tid: Json = 0
    id: Json = None
    s: Json = None


class RawEvent(_Head, frozen=True, gc=False):
    """One event."""

    args: dict[str, msgspec.Raw] | list[Json] | str | float | bool | None = None
    """Values by name, not decoded: most repeat those of other events."""


class _Checked(_Head, frozen=True, gc=False):
    """An event all of whose values are decoded, for what is not JSON in them."""

    args: Json = None


class _Object(msgspec.Struct, rename="camel"):
    trace_events: list[_Checked] | None = None
    schema_version: Json = None
    base_time_nanoseconds: Json = None
    device_properties: Json = None
    distributed_info: Json = None
    host_name: Json = msgspec.field(default=None, name="host_name")
    samples: Json = None


class _Events(msgspec.Struct, rename="camel"):
    trace_events: list[RawEvent] = []


class TraceFile(Struct, frozen=True, kw_only=True):
    """What a file holds around its events."""

    kineto: bool = False
    """Flag: the file has kineto's schema."""
    base_ns: int = 0
    """Zero of its clock in nanoseconds since 1970; 0 if unknown."""
    devices: Json = None
    """What kineto says of the machine's GPUs."""
    rank: Json = None
    """What it says of the process's place in a distributed job."""
    host: Json = None
    """What it says of the machine's name."""
    samples: int = 0
    """Number of stack samples in addition to the events."""
    told: tuple[str, ...] = ()
    """What was repaired or left out."""


Take = Callable[["Iterable[list[RawEvent]]"], None]
"""Takes events in their order, some hundreds at a time; all or none of them."""
_EVENTS = msgspec.json.Decoder(list[RawEvent])


class Text:
    """The text of a file, unpacked, in pieces."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Read from a file's beginning; ``name``: for messages."""
        self._file = file
        self.name = name
        self.unended = False
        """Flag: the end of its gzip stream is missing; known once all is read."""

    def __iter__(self) -> Iterator[bytes]:
        """The pieces.

        Raises:
            FormatError: it is a damaged gzip file, or larger than ``MAX_BYTES`` when unpacked.
        """
        piece = self._file.read(PIECE_BYTES)
        if piece.startswith(_GZIP):
            yield from self._unpacked(piece)
            return
        while piece:
            yield piece
            piece = self._file.read(PIECE_BYTES)

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        left = MAX_BYTES
        while packed and not unpacker.eof:
            try:
                text = unpacker.decompress(packed, min(PIECE_BYTES, left + 1))
            except zlib.error as error:
                raise FormatError(f"{self.name}: damaged gzip file ({error}); expected trace events as JSON") from error
            left -= len(text)
            if left < 0:
                raise FormatError(f"{self.name}: more than {MAX_BYTES >> 30} GiB when unpacked; expected less")
            yield text
            packed = unpacker.unconsumed_tail or self._file.read(PIECE_BYTES)
        if not unpacker.eof:
            yield unpacker.flush()
            self.unended = not unpacker.eof


def read(text: Text, take: Take) -> TraceFile:
    """Read a trace file; ``take`` is given its events in the file's order.

    ``take`` may raise msgspec.DecodeError or UnicodeDecodeError for values that are no JSON, and then takes none.

    Raises:
        FormatError: it is not JSON, holds no events, or none of them is whole.
    """
    name = text.name
    pieces = _Pieces(name, take)
    pieces.take_all(text)
    content = (pieces.before + pieces.rest).strip()
    if not content:
        if text.unended:
            raise FormatError(f"{name}: truncated: {_UNENDED}; expected a complete file")
        raise FormatError(f"{name}: empty; expected trace events as JSON")
    _check_beginning(content, name)
    try:
        file, events = _whole(content, name)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        file, events = _repaired(content, name, error, unended=text.unended, earlier=pieces.events)
    take([events])
    return file


class _Pieces:
    """Divides a text into arrays of whole events as it arrives, as long as all is well with it."""

    def __init__(self, name: str, take: Take) -> None:
        self._name = name
        self._take = take
        self.before = b""
        """What comes before the events: ``[``, or an object up to its array of events."""
        self.rest = b""
        """What comes after the events that were taken."""
        self.events = 0
        """Number of events that were taken."""

    def take_all(self, text: Text) -> None:
        """Take the events of a text but the last ones."""
        arrived: list[bytes] = []
        size, wanted = 0, PIECE_BYTES
        for piece in text:
            arrived.append(piece)
            size += len(piece)
            if size < wanted:
                continue
            self.rest = b"".join(arrived)
            try:
                wanted = PIECE_BYTES if self._take_some() else 2 * size
            except (UnicodeDecodeError, msgspec.DecodeError):
                wanted = MAX_BYTES << 10  # the rest is read at once
            arrived, size = [self.rest], len(self.rest)
        self.rest = b"".join(arrived)

    def _take_some(self) -> bool:
        """Take whole events from the beginning of ``rest``; False if there are none yet.

        Raises:
            UnicodeDecodeError, msgspec.DecodeError: it is no array of events.
        """
        if not self.before and not self._open():
            return False
        bound = trace_repair.last_bound(self.rest)
        if bound is None:
            return False
        end, start = bound
        if not self.rest.isascii():
            self.rest[:end].decode()
        before = self.events
        try:
            self._take(self._decoded(end))
        except (UnicodeDecodeError, msgspec.DecodeError):
            self.events = before
            raise
        self.rest = self.rest[start:]
        return True

    def _decoded(self, end: int) -> Iterator[list[RawEvent]]:
        """The events in ``rest`` before ``end``, in parts that stay in the processor's cache."""
        first, size = 0, _PART_BYTES
        while first < end:
            bound: tuple[int, int] | None = (end - first, end)
            if first + size < end:
                bound = trace_repair.last_bound(self.rest[first : first + size])
            if bound is None:
                size *= 2
                continue
            events = _EVENTS.decode(b"[" + self.rest[first : first + bound[0]] + b"]")
            self.events += len(events)
            yield events
            first, size = first + bound[1], _PART_BYTES

    def _open(self) -> bool:
        """Find where the events begin."""
        self.rest = self.rest.lstrip()
        _check_beginning(self.rest, self._name)
        begin = trace_repair.begin_of_events(self.rest)
        if begin is None:
            return False
        before = self.rest[:begin]
        _whole(before + (b"]" if before == b"[" else b"]}"), self._name)
        self.before, self.rest = before, self.rest[begin:]
        return True


def _check_beginning(text: bytes, name: str) -> None:
    if text and text[:1] not in {b"[", b"{"}:
        raise FormatError(f"{name}: begins with {text[:12]!r}; expected JSON, an array or an object of trace events")


@nesting.bounded()
def _array(text: bytes) -> list[RawEvent]:
    msgspec.json.decode(text, type=list[_Checked])
    return _EVENTS.decode(text)


@nesting.bounded()
def _whole(text: bytes, name: str) -> tuple[TraceFile, list[RawEvent]]:
    """A text that is JSON, and its events."""
    if text[:1] == b"[":
        return TraceFile(), _array(text)
    found = msgspec.json.decode(text, type=_Object)
    if found.trace_events is None:
        raise FormatError(f"{name}: JSON without traceEvents; expected a Chrome, TensorFlow or kineto trace")
    base = found.base_time_nanoseconds
    file = TraceFile(
        kineto=found.schema_version is not None,
        base_ns=base if isinstance(base, int) else 0,
        devices=found.device_properties,
        rank=found.distributed_info,
        host=found.host_name,
        samples=len(found.samples) if isinstance(found.samples, list) else 0,
    )
    return file, msgspec.json.decode(text, type=_Events).trace_events


def _is_json(text: bytes) -> bool:
    """Whether a text is whole JSON, whatever it holds."""
    try:
        with nesting.bounded():
            msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _begun(before: bytes, opening: bytes, name: str) -> TraceFile:
    """What stands before the events.

    Raises:
        FormatError: it is broken, too.
    """
    try:
        return _whole(before + (b"]" if opening == b"[" else b"]}"), name)[0]
    except msgspec.DecodeError as error:
        raise FormatError(f"{name}: damaged JSON around its events ({error}); expected trace events") from error


def _repaired(
    text: bytes, name: str, error: Exception, *, unended: bool, earlier: int
) -> tuple[TraceFile, list[RawEvent]]:
    """What is around the events that are whole, with what was repaired or left out, and these events."""
    text, replaced = trace_repair.text_of(text)
    told = [replaced] if replaced else []
    try:
        file, events = _whole(text, name)
    except msgspec.DecodeError as again:
        error = again
    else:
        return replace(file, told=tuple(told or ["control characters within texts were replaced"])), events
    found = trace_repair.read(text, _array, earlier)
    if found is None:
        what = "JSON, but no trace events" if _is_json(text) else "damaged JSON"
        why = f"truncated: {_UNENDED}" if unended else f"{what} ({error})"
        raise FormatError(f"{name}: {why}; expected trace events") from error
    events, repaired = found
    try:
        around, _ = _whole(repaired.before + repaired.after, name)
    except msgspec.DecodeError:  # what follows the events is cut or broken: its beginning stands before them
        around = _begun(repaired.before, text[:1], name)
        told.append("what follows the events could not be read")
    if repaired.broken:
        told.append(
            f"left out, as they are no JSON (a quote in a name, for example): {repaired.broken:,} of its events"
        )
    if repaired.cut_bytes:
        told.append(f"truncated file: the last {repaired.cut_bytes} bytes were ignored")
    if unended:
        told.append(_UNENDED)
    return replace(around, told=tuple(told)), events
