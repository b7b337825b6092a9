"""Perfetto's protobuf trace, written packet by packet in columns: tracks, spans, counters, flows.

Each track is a packet sequence, so that its packets stand in the order of time and its names are interned for it
alone. A span is a begin and an end; one without duration is an instant. Memory is bounded by one block of packets and
by the names of one track.

Source: https://perfetto.dev/docs/reference/trace-packet-proto (protos/perfetto/trace of Perfetto 59), and
https://perfetto.dev/docs/reference/synthetic-track-event
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.exporters import proto_columns as columns
from stepscope.readers.protobuf.codec import encode_bytes, encode_number, encode_varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.exporters.proto_columns import Piece
    from stepscope.tables.records import F64, I64

BLOCK = 1 << 15
"""Spans encoded at a time, so that their columns stay in the processor's cache."""
_BOOTTIME, _REALTIME = 6, 1
_CLEARED, _NEEDED = 1, 2
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_BY_KEY = 3
"""SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY."""
_EXPLICIT = 3
"""ChildTracksOrdering.EXPLICIT."""
_SIZE_BYTES = 3
_PACKET, _AT, _EVENT = b"\x0a", b"\x40", b"\x5a"
_FLOW, _FLOW_ENDS = encode_varint(47 << 3 | 1), encode_varint(48 << 3 | 1)
_STRING_IID = encode_varint(17 << 3)


class SpanLabel(Struct, frozen=True, kw_only=True):
    """What spans of one name share."""

    name: str
    category: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Debug annotations."""


class Arg(Struct, frozen=True, kw_only=True):
    """A debug annotation that some spans have. Shapes: ``rows`` rising, ``values`` int64 or float64: [value]."""

    name: str
    rows: I64
    values: I64 | F64
    texts: Sequence[str] | None = None
    """The values are indices into these."""


class Ends(Struct, frozen=True, kw_only=True):
    """Ends of flows at spans. Shapes: [end], by row; at most some of a row."""

    rows: I64
    ids: I64
    out: bool
    """Whether the flow begins here."""


class Spans(Struct, frozen=True, kw_only=True):
    """Spans that nest, by start, longer ones first. Shapes: [span]."""

    start: I64
    end: I64
    name: I64
    """Index into ``words``."""
    words: Sequence[SpanLabel]
    args: Sequence[Arg] = ()
    flows: Sequence[Ends] = ()

    def __len__(self) -> int:
        """Number of spans."""
        return len(self.start)


class PacketWriter:
    """Writes a trace to a stream. Times are nanoseconds, none negative."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Nothing is written yet."""
        self._stream = stream
        self._ids = 0
        self.packets = 0

    def clock(self, at_ns: int, unix_ns: int) -> None:
        """Says what time of the day a time of the trace is."""
        clocks = b"".join(
            encode_bytes(1, encode_number(1, clock) + _number(2, at))
            for clock, at in ((_BOOTTIME, at_ns), (_REALTIME, unix_ns))
        )
        self._write(_number(8, at_ns) + encode_bytes(6, clocks + encode_number(2, _BOOTTIME)))

    def process(self, pid: int, name: str, rank: int) -> int:
        """A process; returns the number by which tracks name it."""
        about = encode_number(1, pid) + encode_bytes(6, _text(name))
        return self._descriptor(encode_bytes(3, about) + _ordered(rank))

    def group(self, name: str, parent: int, rank: int) -> int:
        """A named group of tracks, in another one or (0) in none."""
        return self._descriptor(encode_bytes(2, _text(name)) + encode_number(5, parent) + _ordered(rank))

    def thread(self, pid: int, tid: int, name: str) -> int:
        """A thread of a process."""
        about = encode_number(1, pid) + encode_number(2, tid) + encode_bytes(5, _text(name))
        return self._descriptor(encode_bytes(4, about))

    def track(self, name: str, parent: int, rank: int) -> int:
        """A track of a group. Those of one rank are drawn as one with several rows."""
        merged = encode_number(15, _BY_KEY) + _number(17, rank)
        return self._descriptor(
            encode_bytes(2, _text(name)) + encode_number(5, parent) + encode_number(12, rank) + merged
        )

    def counter(self, name: str, unit: str, parent: int, rank: int) -> int:
        """A track of a number over time."""
        kind = encode_number(3, _SIZE_BYTES) if unit == "bytes" else encode_bytes(6, _text(unit))
        about = encode_bytes(2, _text(name)) + encode_number(5, parent) + encode_bytes(8, kind)
        return self._descriptor(about + encode_number(12, rank))

    def _descriptor(self, about: bytes) -> int:
        self._ids += 1
        self._write(encode_bytes(60, encode_number(1, self._ids) + about))
        return self._ids

    def add_spans(self, track: int, spans: Spans) -> None:
        """The spans of a track, in one go."""
        sequence = _Sequence(track)
        rows = columns.chosen([*_bodies(spans.words, sequence), encode_number(9, _END)])
        self._write(sequence.first())
        stops = np.empty(0, np.int64)
        for first in range(0, len(spans), BLOCK):
            last = min(first + BLOCK, len(spans))
            start, end = spans.start[first:last], spans.end[first:last]
            stops = np.sort(np.concatenate([stops, end[end > start]]))
            ready = len(stops) if last == len(spans) else int(np.searchsorted(stops, spans.start[last], "right"))
            begins = np.arange(len(start)) + np.searchsorted(stops[:ready], start, "right")
            total = len(start) + ready
            is_begin = np.zeros(total, np.bool_)
            is_begin[begins] = True
            at, code = np.empty(total, np.int64), np.full(total, 2 * len(spans.words))
            at[begins], at[~is_begin] = start, stops[:ready]
            code[begins] = 2 * spans.name[first:last] + (end == start)
            stops = stops[ready:]
            tails = list(_args(spans, range(first, last), begins, total, sequence))
            tails += _flows(spans, range(first, last), begins, total)
            new = sequence.new()
            if new:
                self._write(new)
            self._write_events(at, [columns.taken(rows, code), *tails], sequence)

    def add_values(self, track: int, at: I64, values: F64) -> None:
        """The values of a counter, each from its time on."""
        sequence = _Sequence(track)
        self._write(sequence.first())
        for first in range(0, len(at), BLOCK):
            part = slice(first, first + BLOCK)
            head = columns.constant(encode_number(9, _COUNTER) + encode_varint(44 << 3 | 1), len(at[part]))
            self._write_events(at[part], [head, columns.fixed64(values[part])], sequence)

    def _write_events(self, at: I64, body: Sequence[Piece], sequence: _Sequence) -> None:
        if not len(at):
            return
        event = columns.with_length(sequence.head + _EVENT, body)
        packets = columns.with_length(_PACKET, [columns.constant(_AT, len(at)), columns.varints(at), *event])
        self._stream.write(columns.joined(packets))
        self.packets += len(at)

    def _write(self, packet: bytes) -> None:
        self._stream.write(encode_bytes(1, packet))
        self.packets += 1


class _Sequence:
    """A packet sequence, and what is interned on it."""

    def __init__(self, track: int) -> None:
        self._track = track
        self.head = encode_number(10, track) + encode_number(13, _NEEDED)
        self._known: dict[int, dict[str, int]] = {}
        self._new: list[bytes] = []

    def intern(self, kind: int, text: str) -> int:
        """The number of a text; ``kind``: its field in InternedData."""
        known = self._known.setdefault(kind, {})
        if text not in known:
            known[text] = len(known) + 1
            self._new.append(encode_bytes(kind, encode_number(1, known[text]) + encode_bytes(2, _text(text))))
        return known[text]

    def first(self) -> bytes:
        """Its first packet: clears what was interned, and names its track."""
        defaults = encode_bytes(59, encode_bytes(11, encode_number(11, self._track)))
        interned = encode_bytes(12, b"".join(self._new))
        self._new.clear()
        return encode_number(10, self._track) + encode_number(13, _CLEARED) + defaults + interned

    def new(self) -> bytes:
        """A packet with what was interned since the last one; empty if nothing was."""
        packet = self.head + encode_bytes(12, b"".join(self._new)) if self._new else b""
        self._new.clear()
        return packet


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _number(number: int, value: int) -> bytes:
    """An integer field that is written for 0 as well."""
    return encode_varint(number << 3) + encode_varint(value)


def _ordered(rank: int) -> bytes:
    """Fields of a group: its rank, and that its tracks have one."""
    return encode_number(11, _EXPLICIT) + encode_number(12, rank)


def _bodies(words: Sequence[SpanLabel], sequence: _Sequence) -> Iterator[bytes]:
    """Content of the event of each name: as the begin of a span, and as an instant."""
    for one in words:
        category = encode_number(3, sequence.intern(1, one.category)) if one.category else b""
        about = encode_number(10, sequence.intern(2, one.name)) + category
        for name, value in one.notes.items():
            noted = encode_number(1, sequence.intern(3, name)) + encode_number(17, sequence.intern(29, value))
            about += encode_bytes(4, noted)
        yield encode_number(9, _BEGIN) + about
        yield encode_number(9, _INSTANT) + about


def _args(spans: Spans, block: range, begins: I64, count: int, sequence: _Sequence) -> Iterator[Piece]:
    """Debug annotations of the spans of a block, at its packets."""
    for arg in spans.args:
        low, high = np.searchsorted(arg.rows, (block.start, block.stop)).tolist()
        if low == high:
            continue
        values = arg.values[low:high]
        if arg.texts is not None:
            used, at = np.unique(values, return_inverse=True)
            numbers = [sequence.intern(29, arg.texts[which]) for which in used.tolist()]
            tag, value = _STRING_IID, columns.varints(np.array(numbers, np.int64)[at])
        elif values.dtype == np.float64:
            tag, value = encode_varint(5 << 3 | 1), columns.fixed64(values)
        else:
            tag, value = encode_varint(4 << 3), columns.varints(values.astype(np.int64, copy=False))
        head = columns.constant(encode_number(1, sequence.intern(3, arg.name)) + tag, high - low)
        noted = columns.with_length(b"\x22", [head, value])
        yield columns.spread(noted, begins[arg.rows[low:high] - block.start], count)


def _flows(spans: Spans, block: range, begins: I64, count: int) -> Iterator[Piece]:
    """Ends of flows at the spans of a block, at its packets."""
    for ends in spans.flows:
        low, high = np.searchsorted(ends.rows, (block.start, block.stop)).tolist()
        rows, ids = ends.rows[low:high], ends.ids[low:high]
        tag = _FLOW if ends.out else _FLOW_ENDS
        order = np.arange(len(rows)) - np.searchsorted(rows, rows, "left")
        for which in range(int(order.max(initial=-1)) + 1):
            here = order == which
            head = columns.constant(tag, int(here.sum()))
            yield columns.spread([head, columns.fixed64(ids[here])], begins[rows[here] - block.start], count)
