"""Writes XSpace messages: tests choose planes, lines, events and stats themselves (fields: readers.xplane.messages)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from stepscope.readers.protobuf.codec import encode_bytes, encode_varint

Value = int | float | str | bytes


@dataclass(frozen=True)
class Event:
    """One event; ``occurrences`` instead of an offset makes it one that stands for several."""

    name: str
    offset_ps: int = 0
    dur_ps: int = 0
    stats: tuple[tuple[str, Value], ...] = ()
    occurrences: int = 0


@dataclass(frozen=True)
class Line:
    """One line."""

    name: str
    events: tuple[Event, ...] = ()
    id: int = 1
    timestamp_ns: int = 0


@dataclass(frozen=True)
class Plane:
    """One plane; ``metas``: stats of kinds of events, by name."""

    name: str
    lines: tuple[Line, ...] = ()
    stats: tuple[tuple[str, Value], ...] = ()
    metas: dict[str, tuple[tuple[str, Value], ...]] = field(default_factory=dict)


def number(key: int, value: int) -> bytes:
    """An integer field, also where it is 0."""
    return encode_varint(key << 3) + encode_varint(value)


def _stat(key: int, value: Value, *, unsigned: bool) -> bytes:
    head = number(1, key)
    if isinstance(value, float):
        return head + encode_varint(2 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, str):
        return head + encode_bytes(5, value.encode())
    if isinstance(value, bytes):
        return head + encode_bytes(6, value)
    return head + number(3 if unsigned or value >= 1 << 63 else 4, value)


class _Ids(dict[str, int]):
    def __missing__(self, name: str) -> int:
        self[name] = len(self) + 1
        return self[name]


def plane(one: Plane, *, shuffled: bool = False) -> bytes:
    """An XPlane; ``shuffled``: the fields of messages in an order that no profiler uses."""
    stats, metas = _Ids(), _Ids()

    def stat(pair: tuple[str, Value]) -> bytes:
        return _stat(stats[pair[0]], pair[1], unsigned=pair[0].startswith("u"))

    def event(e: Event) -> bytes:
        parts = [number(1, metas[e.name])]
        parts += [number(5, e.occurrences)] if e.occurrences else [number(2, e.offset_ps)] if e.offset_ps else []
        parts += [number(3, e.dur_ps)] if e.dur_ps else []
        parts += [encode_bytes(4, stat(s)) for s in e.stats]
        return b"".join(reversed(parts) if shuffled else parts)

    def line(x: Line) -> bytes:
        events = b"".join(encode_bytes(4, event(e)) for e in x.events)
        head = number(1, x.id) + encode_bytes(2, x.name.encode())
        clock = number(3, x.timestamp_ns)
        return events + clock + head if shuffled else head + clock + events

    lines = b"".join(encode_bytes(3, line(x)) for x in one.lines)
    own = b"".join(encode_bytes(6, stat(s)) for s in one.stats)
    for name in one.metas:
        metas[name]
    kinds = b""
    for name, key in metas.items():
        inner = [number(1, key), encode_bytes(2, name.encode())]
        inner += [encode_bytes(5, stat(s)) for s in one.metas.get(name, ())]
        entry = [number(1, key), encode_bytes(2, b"".join(reversed(inner) if shuffled else inner))]
        kinds += encode_bytes(4, b"".join(reversed(entry) if shuffled else entry))
    names = b"".join(
        encode_bytes(5, number(1, key) + encode_bytes(2, number(1, key) + encode_bytes(2, name.encode())))
        for name, key in stats.items()
    )
    return encode_bytes(2, one.name.encode()) + lines + kinds + names + own


def space(*planes: Plane, hostnames: Sequence[str] = (), shuffled: bool = False) -> bytes:
    """An XSpace."""
    content = b"".join(encode_bytes(1, plane(one, shuffled=shuffled)) for one in planes)
    return content + b"".join(encode_bytes(4, host.encode()) for host in hostnames)
