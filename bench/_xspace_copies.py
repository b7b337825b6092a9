"""Makes a large XSpace from a real one: the same capture repeated, one copy after the other in time.

Every copy is shifted by the length of the capture, its steps are counted on, and the ids that link its events are
unique to it, so that a reader finds one long capture and not many equal ones. The stats of an event keep their order:
readers look for some, and find them where a profiler writes them. It is written event by event into a file, so only the
disk limits the size.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.readers.byte_source import ByteSource
from stepscope.readers.protobuf.codec import BYTES, VARINT, encode_bytes, encode_varint
from stepscope.readers.protobuf.wire_fields import fields
from stepscope.readers.xplane.messages import read_space

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_LINES, _EVENTS, _EVENT_STATS, _OFFSET, _STAT_ID = 3, 4, 4, 2, 1
_LINKS = {"_p": 1 << 40, "_c": 1 << 40, "id": 1 << 24, "correlation_id": 1 << 24, "group_id": 1 << 12}
"""Offset per copy of the stats that link events: threads, one run of the executor, a launch with its kernel, a step."""
_MODULUS = 1 << 64
_FLUSH_BYTES = 8 << 20
_STEPS = 1_000
"""Offset of the step numbers of one copy from those of the one before."""


@dataclass(frozen=True, slots=True)
class _Event:
    """The constant and changing parts of an event: pieces of bytes, with a stat between every two."""

    head: bytes
    offset_ps: int
    fixed: tuple[bytes, ...]
    changing: tuple[tuple[bytes, int, int], ...]
    """Changing stats: bytes before the value, value, and increment per copy."""


def copies_for(source: Path, events: int) -> int:
    """Number of copies that give at least ``events`` events."""
    space = _Space(source)
    return -(-events // max(1, space.events))


def write(source: Path, target: Path, copies: int) -> int:
    """Write ``copies`` of ``source``; returns the number of events."""
    space = _Space(source)
    with target.open("wb") as sink:
        for number_, wire, first, last in fields(space.view, 0, space.source.size):
            if number_ == 1 and wire == BYTES:
                space.write_plane(sink, first, last, copies)
            else:
                sink.write(encode_varint(number_ << 3 | wire))
                sink.write(encode_varint(last - first) + bytes(space.view[first:last]))
    return space.events * copies


class _Space:
    """A real file, split into its parts."""

    def __init__(self, path: Path) -> None:
        self.source = ByteSource.open(path)
        self.view = self.source.view
        self.planes = {plane.name: plane for plane in read_space(self.source).planes}
        self.events = 0
        self.period_ps = 0
        for _, _, first, last in self._planes():
            for line_first, line_last in self._lines(first, last):
                for event in self._events(line_first, line_last, {}):
                    self.events += 1
                    self.period_ps = max(self.period_ps, event.offset_ps)
        self.period_ps += 1_000_000_000

    def _planes(self) -> Iterator[tuple[int, int, int, int]]:
        return (f for f in fields(self.view, 0, self.source.size) if f[0] == 1 and f[1] == BYTES)

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        return ((a, b) for number_, _, a, b in fields(self.view, first, last) if number_ == _LINES)

    def write_plane(self, sink: BinaryIO, first: int, last: int, copies: int) -> None:
        """Write the plane with its lines copied; its length is filled in at the end."""
        name = next(
            (self.source.text(a, b) for n, w, a, b in fields(self.view, first, last) if n == 2 and w == BYTES), ""
        )
        names = self.planes[name].stat_names
        length_at = _open(sink, 1)
        for number_, wire, at, end in fields(self.view, first, last):
            if number_ == _LINES and wire == BYTES:
                self._write_line(sink, at, end, names, copies)
            elif wire == VARINT:
                sink.write(encode_varint(number_ << 3) + encode_varint(at))
            else:
                sink.write(encode_bytes(number_, bytes(self.view[at:end])))
        _close(sink, length_at)

    def _write_line(self, sink: BinaryIO, first: int, last: int, names: dict[int, str], copies: int) -> None:
        length_at = _open(sink, _LINES)
        for number_, wire, at, end in fields(self.view, first, last):
            if number_ == _EVENTS and wire == BYTES:
                continue
            sink.write(
                encode_varint(number_ << 3) + encode_varint(at)
                if wire == VARINT
                else encode_bytes(number_, bytes(self.view[at:end]))
            )
        events = list(self._events(first, last, names))
        out = bytearray()
        for copy in range(copies):
            shift = copy * self.period_ps
            for event in events:
                content = event.head + encode_varint(event.offset_ps + shift) + event.fixed[0]
                for (before, value, step), after in zip(event.changing, event.fixed[1:], strict=True):
                    changed = before + encode_varint((value + step * copy) % _MODULUS)
                    content += encode_bytes(_EVENT_STATS, changed) + after
                out += b"\x22" + encode_varint(len(content)) + content
            if len(out) > _FLUSH_BYTES:
                sink.write(out)
                out.clear()
        sink.write(out)
        _close(sink, length_at)

    def _events(self, first: int, last: int, names: dict[int, str]) -> Iterator[_Event]:
        for number_, wire, at, end in fields(self.view, first, last):
            if number_ == _EVENTS and wire == BYTES:
                yield self._event(at, end, names)

    def _event(self, first: int, last: int, names: dict[int, str]) -> _Event:
        head, offset, fixed = b"", 0, [b""]
        changing = []
        for number_, wire, at, end in fields(self.view, first, last):
            if number_ == _OFFSET and wire == VARINT:
                offset = at
            elif number_ == _EVENT_STATS and wire == BYTES:
                stat = self._stat(at, end, names)
                if stat is None:
                    fixed[-1] += encode_bytes(_EVENT_STATS, bytes(self.view[at:end]))
                else:
                    changing.append(stat)
                    fixed.append(b"")
            elif number_ < _OFFSET:
                head += encode_varint(number_ << 3) + encode_varint(at)
            else:
                fixed[-1] += encode_varint(number_ << 3) + encode_varint(at)
        return _Event(head + encode_varint(_OFFSET << 3), offset, tuple(fixed), tuple(changing))

    def _stat(self, first: int, last: int, names: dict[int, str]) -> tuple[bytes, int, int] | None:
        """A stat whose value differs in each copy."""
        key, value, before = 0, None, b""
        for number_, wire, at, _ in fields(self.view, first, last):
            if number_ == _STAT_ID:
                key = at
                before = encode_varint(_STAT_ID << 3) + encode_varint(at)
            elif wire == VARINT:
                value = at
                before += encode_varint(number_ << 3)
        name = names.get(key, "")
        if value is None:
            return None
        if name == "step_num":
            return before, value, _STEPS
        return (before, value, _LINKS[name]) if name in _LINKS else None


_LENGTH_BYTES = 5


def _open(sink: BinaryIO, field: int) -> int:
    """Begin a field of bytes whose length is not yet known."""
    sink.write(encode_varint(field << 3 | BYTES))
    at = sink.tell()
    sink.write(bytes(_LENGTH_BYTES))
    return at


def _close(sink: BinaryIO, at: int) -> None:
    """Fill in the length, always in five bytes."""
    end = sink.tell()
    length = end - at - _LENGTH_BYTES
    padded = bytes((length >> 7 * i & 0x7F) | (0x80 if i < _LENGTH_BYTES - 1 else 0) for i in range(_LENGTH_BYTES))
    sink.seek(at)
    sink.write(padded)
    sink.seek(end)
