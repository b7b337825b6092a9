"""Chrome trace-event JSON: decoded, repaired where the format allows it, but not interpreted.

A file is an array of events, or an object that holds one as ``traceEvents``. Its end may be missing: the format allows
a missing ``]``, and a job that dies leaves a cut event. ``.gz`` is recognised by its first bytes.

Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import msgspec

from stepscope.errors import FormatError

MAX_BYTES = 4 << 30
"""Maximum size after unpacking; larger files are refused."""
_GZIP = b"\x1f\x8b"
_CUTS = 64
"""Number of object ends that are tried, from the end, if a file is cut."""

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
    samples: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """The events of a file and the data around them."""

    events: list[RawEvent]
    kineto: bool = False
    """Flag: the file has kineto's schema."""
    base_ns: int = 0
    """Zero of its clock in nanoseconds since 1970; 0 if unknown."""
    devices: Json = None
    """What kineto says of the machine's GPUs."""
    samples: int = 0
    """Number of stack samples in addition to the events."""
    left_out_bytes: int = 0
    """Bytes omitted at the end of a cut file."""


def decode(content: bytes, name: str) -> TraceFile:
    """The events of a trace file.

    Raises:
        FormatError: it is not JSON, holds no events, or is damaged elsewhere than at its end.
    """
    if content.startswith(_GZIP):
        content = _unpacked(content, name)
    text = content.strip()
    if not text:
        raise FormatError(f"{name}: empty; expected trace events as JSON")
    if text[:1] not in {b"[", b"{"}:
        raise FormatError(f"{name}: begins with {text[:12]!r}; expected JSON, an array or an object of trace events")
    try:
        return _read(text, name, 0)
    except UnicodeDecodeError as error:
        raise FormatError(f"{name}: damaged: not UTF-8 text ({error.reason}); expected trace events") from error
    except msgspec.DecodeError as error:
        return _repaired(text, name, error)


def _unpacked(content: bytes, name: str) -> bytes:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        text = unpacker.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise FormatError(f"{name}: damaged gzip file ({error}); expected trace events as JSON") from error
    if unpacker.unconsumed_tail:
        raise FormatError(f"{name}: more than {MAX_BYTES >> 30} GiB when unpacked; expected less")
    if not unpacker.eof:
        raise FormatError(f"{name}: truncated: its gzip stream has no end; expected a complete file")
    return text


def _read(text: bytes, name: str, left_out: int) -> TraceFile:
    if text[:1] == b"[":
        return TraceFile(events=msgspec.json.decode(text, type=list[RawEvent]), left_out_bytes=left_out)
    found = msgspec.json.decode(text, type=_Object)
    if found.trace_events is None:
        raise FormatError(f"{name}: JSON without traceEvents; expected a Chrome, TensorFlow or kineto trace")
    base = found.base_time_nanoseconds
    return TraceFile(
        events=found.trace_events,
        kineto=found.schema_version is not None,
        base_ns=base if isinstance(base, int) else 0,
        devices=found.device_properties,
        samples=len(found.samples) if isinstance(found.samples, list) else 0,
        left_out_bytes=left_out,
    )


def _repaired(text: bytes, name: str, error: msgspec.DecodeError) -> TraceFile:
    """The events before the cut, if a cut is the only damage."""
    closing = b"]" if text[:1] == b"[" else b"]}"
    end = len(text)
    for _ in range(_CUTS):
        end = text.rfind(b"}", 0, end)
        if end < 0:
            break
        try:
            return _read(text[: end + 1] + closing, name, len(text[end + 1 :].strip(b", \t\r\n")))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    raise FormatError(f"{name}: damaged JSON ({error}); expected trace events") from error
