"""Chrome trace-event JSON: decoded, repaired where parts of it are whole (``trace_repair``), but not interpreted.

A file is an array of events, or an object that holds one as ``traceEvents``. Its end may be missing: the format allows
a missing ``]``, and a job that dies leaves a cut event, or a gzip stream without its end. ``.gz`` is recognised by its
first bytes.

Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import zlib

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepscope.readers.chrome import trace_repair
from stepscope.tables.errors import FormatError

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


class RawEvent(msgspec.Struct, frozen=True):
    """One event, with the fields as the format names them."""

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
    args: Json = None


class _Object(msgspec.Struct, rename="camel"):
    trace_events: list[RawEvent] | None = None
    schema_version: Json = None
    base_time_nanoseconds: Json = None
    device_properties: Json = None
    distributed_info: Json = None
    host_name: Json = msgspec.field(default=None, name="host_name")
    samples: Json = None


class TraceFile(Struct, frozen=True, kw_only=True):
    """The events of a file and the data around them."""

    events: list[RawEvent]
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


def decode(content: bytes, name: str) -> TraceFile:
    """The events of a trace file.

    Raises:
        FormatError: it is not JSON, holds no events, or none of them is whole.
    """
    unended = False
    if content.startswith(_GZIP):
        content, unended = _unpacked(content, name)
    text = content.strip()
    if not text:
        if unended:
            raise FormatError(f"{name}: truncated: {_UNENDED}; expected a complete file")
        raise FormatError(f"{name}: empty; expected trace events as JSON")
    if text[:1] not in {b"[", b"{"}:
        raise FormatError(f"{name}: begins with {text[:12]!r}; expected JSON, an array or an object of trace events")
    try:
        return _read(text, name)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        return _repaired(text, name, error, unended=unended)


def _unpacked(content: bytes, name: str) -> tuple[bytes, bool]:
    """The text, and whether its end is missing."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        text = unpacker.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise FormatError(f"{name}: damaged gzip file ({error}); expected trace events as JSON") from error
    if unpacker.unconsumed_tail:
        raise FormatError(f"{name}: more than {MAX_BYTES >> 30} GiB when unpacked; expected less")
    return (text, False) if unpacker.eof else (text + unpacker.flush(), True)


def _array(text: bytes) -> list[RawEvent]:
    return msgspec.json.decode(text, type=list[RawEvent])


def _read(text: bytes, name: str) -> TraceFile:
    if text[:1] == b"[":
        return TraceFile(events=_array(text))
    found = msgspec.json.decode(text, type=_Object)
    if found.trace_events is None:
        raise FormatError(f"{name}: JSON without traceEvents; expected a Chrome, TensorFlow or kineto trace")
    base = found.base_time_nanoseconds
    return TraceFile(
        events=found.trace_events,
        kineto=found.schema_version is not None,
        base_ns=base if isinstance(base, int) else 0,
        devices=found.device_properties,
        rank=found.distributed_info,
        host=found.host_name,
        samples=len(found.samples) if isinstance(found.samples, list) else 0,
    )


def _is_json(text: bytes) -> bool:
    """Whether a text is whole JSON, whatever it holds."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _repaired(text: bytes, name: str, error: Exception, *, unended: bool) -> TraceFile:
    """The events that are whole, with what was repaired or left out."""
    text, replaced = trace_repair.text_of(text)
    told = [replaced] if replaced else []
    try:
        return replace(_read(text, name), told=tuple(told or ["control characters within texts were replaced"]))
    except msgspec.DecodeError as again:
        error = again
    found = trace_repair.read(text, _array)
    if found is None:
        what = "JSON, but no trace events" if _is_json(text) else "damaged JSON"
        why = f"truncated: {_UNENDED}" if unended else f"{what} ({error})"
        raise FormatError(f"{name}: {why}; expected trace events") from error
    events, repaired = found
    try:
        around = _read(repaired.before + repaired.after, name)
    except msgspec.DecodeError:  # what follows the events is cut or broken: its beginning stands before them
        around = _read(repaired.before + (b"]" if text[:1] == b"[" else b"]}"), name)
        told.append("what follows the events could not be read")
    if repaired.broken:
        told.append(
            f"left out, as they are no JSON (a quote in a name, for example): {repaired.broken:,} of its events"
        )
    if repaired.cut_bytes:
        told.append(f"truncated file: the last {repaired.cut_bytes} bytes were ignored")
    if unended:
        told.append(_UNENDED)
    return replace(around, events=events, told=tuple(told))
