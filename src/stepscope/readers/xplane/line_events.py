"""The events of a line, in columns.

``record_heads`` finds the starts of events; here every field is read for many events at once. Events whose fields are
in another order, or that lack one, are read one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.readers.byte_source import ByteSource, Windows
from stepscope.readers.protobuf.codec import BYTES, VARINT, signed
from stepscope.readers.protobuf.varints import Buffer, decode, number_field
from stepscope.readers.protobuf.wire_fields import fields, varint
from stepscope.readers.xplane import record_heads
from stepscope.readers.xplane.messages import (
    EVENT_DURATION,
    EVENT_ID,
    EVENT_OCCURRENCES,
    EVENT_OFFSET,
    EVENT_STATS,
    LINE_EVENTS,
    STAT_INT,
    STAT_UINT,
    tag,
)
from stepscope.readers.xplane.stat_ids import id_places, rows_between
from stepscope.readers.xplane.stat_walk import walk
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.tables.optrace import I16, I32
    from stepscope.tables.records import I64, Bool

_WINDOW_BYTES = 1 << 21
"""Bytes read at a time, so that many events share the cost of the calls."""
_TAIL_BYTES = 1 << 12
"""Bytes read after a window, so that its last event is complete; a longer event makes the window be read again."""
_TABLE_FACTOR, _TABLE_MIN = 8, 1 << 16
"""Factor and minimum for the range of ids that are looked up in a table."""
_BLOCK = 1 << 15
"""Number of events decoded at a time, likewise."""
_MORE = 0x80
_EVENT_TAG = tag(LINE_EVENTS, BYTES)
_ID_TAG = tag(EVENT_ID, VARINT)
_OFFSET_TAG = tag(EVENT_OFFSET, VARINT)
_DURATION_TAG = tag(EVENT_DURATION, VARINT)
_STATS_TAG = tag(EVENT_STATS, BYTES)
_EVENT = record_heads.Look(_EVENT_TAG, _OFFSET_TAG)
"""Look of an event. A stat inside an event looks the same, except for the offset."""
_INT_TAG, _UINT_TAG = tag(STAT_INT, VARINT), tag(STAT_UINT, VARINT)
_PS_PER_NS = 1000
_MAX_PS = (1 << 61) - 1
_LINE_ID, _LINE_NAME, _LINE_TIMESTAMP, _LINE_DISPLAY_NAME = 1, 2, 3, 11


class WireLine(Struct):
    """The data in an XLine around its events."""

    id: int = 0
    name: str = ""
    display_name: str = ""
    timestamp_ns: int = 0


class Kinds:
    """The event metadata of one plane, by id, with the kinds to omit."""

    def __init__(self, ids: Sequence[int], dropped: Sequence[bool]) -> None:
        """Store the ids in the order of the plane, with ``dropped`` of each."""
        self.dropped: Bool = np.array([*dropped, False], np.bool_)
        self.drops = bool(self.dropped.any())
        order = np.argsort(np.array(ids, np.int64), kind="stable")
        self._ids = np.array(ids, np.int64)[order]
        self._order = np.append(order, len(ids))
        self._table: I64 | None = None
        if len(ids) and self._ids[0] >= 0 and self._ids[-1] < len(ids) * _TABLE_FACTOR + _TABLE_MIN:
            self._table = np.full(int(self._ids[-1]) + 2, len(ids), np.int64)
            self._table[self._ids] = order

    def positions(self, ids: I64) -> I64:
        """The position of each id; the number of ids for an unknown one."""
        position: I64
        if self._table is not None:
            beyond = np.uint64(len(self._table) - 1)
            position = self._table[np.minimum(ids.view(np.uint64), beyond).view(np.int64)]
        else:
            found = np.searchsorted(self._ids, ids)
            known = found < len(self._ids)
            known[known] = self._ids[found[known]] == ids[known]
            position = self._order[np.where(known, found, len(self._ids))]
        return position


class EventBlock(Struct, kw_only=True):
    """Some events of a line, in file order. Shapes: [event]. Times are rounded as in ``tables.optrace``."""

    meta: I32
    """Position in the plane's metadata; its ``len`` if the file has none for the event."""
    start_ns: I64
    """Start since the line's ``timestamp_ns``."""
    dur_ns: I64
    rem_ps: I16 | None
    """Exact duration minus ``dur_ns``; None: all zero."""
    stats_at: I64
    """Position in the file of its stats."""
    stats_size: I32
    occurrences: dict[int, int]
    """Occurrences of events that stand for several: position in this block, and number."""
    likely: dict[int, I64]
    """Events that may have a searched stat, by its id: positions in this block, rising, each as often as the bytes of
    the id occur in it; without those of ``numbers``."""
    numbers: dict[int, tuple[I64, I64]]
    """Searched numbers, by the stat's id: positions in this block of the events, rising, and the numbers."""
    dropped: int
    """Number of events omitted because of their kind."""

    def __len__(self) -> int:
        """The number of events."""
        return len(self.start_ns)


class LineReader:
    """Reads the lines of a file one after the other and reuses its memory."""

    def __init__(self, source: ByteSource) -> None:
        """Read from a source."""
        self._source = source
        self._windows = Windows(source)

    def read(
        self, first: int, last: int, line: WireLine, kinds: Kinds, sought: Mapping[int, bool]
    ) -> Iterator[EventBlock]:
        """The events of the line between two positions; the data around them goes into ``line``.

        ``sought``: ids of stats to search for while the bytes are available, and whether they are numbers.

        Raises:
            FormatError: it is damaged.
        """
        view = self._source.view
        at = first
        while at < last:
            if view[at] != _EVENT_TAG:
                at = _around(self._source, at, last, line)
                continue
            end = min(last, at + _WINDOW_BYTES)
            buffer = self._windows.at(at, min(last, end + _TAIL_BYTES))
            heads = record_heads.find(buffer, end - at, _EVENT)
            reached = at + int(heads[-1])
            if reached > last:
                raise FormatError(f"an event reaches to byte {reached}, its line ends at byte {last}")
            if reached > at + buffer.size:
                buffer = self._windows.at(at, reached)
            places = {key: id_places(buffer, reached - at, key) for key in sought}
            for begin in range(0, len(heads) - 1, _BLOCK):
                block = _block(view, buffer, heads[begin : begin + _BLOCK + 1], kinds, places)
                for key in block.likely:
                    if sought[key]:
                        _take_numbers(buffer, block, key)
                yield block
            at = reached


def _around(source: ByteSource, at: int, last: int, line: WireLine) -> int:
    """Read one field of a line that is not an event; return its end."""
    number, wire, value, end = next(fields(source.view, at, last))
    if wire == VARINT and number == _LINE_ID:
        line.id = signed(value)
    elif wire == VARINT and number == _LINE_TIMESTAMP:
        line.timestamp_ns = signed(value)
    elif wire == BYTES and number == _LINE_NAME:
        line.name = source.text(value, end)
    elif wire == BYTES and number == _LINE_DISPLAY_NAME:
        line.display_name = source.text(value, end)
    return end


def _block(view: memoryview, buffer: Buffer, heads: I64, kinds: Kinds, places: Mapping[int, I64]) -> EventBlock:
    """The events that begin at all but the last of ``heads``, without those to omit.

    ``places``: possible positions of stat ids in the buffer, rising.
    """
    data, base = buffer.data, buffer.base
    heads, ends = heads[:-1], heads[1:]
    at: I64 = heads + 2
    large = data[heads + 1] >= _MORE
    if large.any():
        at += large
        longer = np.flatnonzero(large & (data[heads + 2] >= _MORE))
        at[longer] = decode(buffer, heads[longer] + 1)[1]
    ids, at, known = number_field(buffer, at, ends, _ID_TAG, small=True)
    meta = kinds.positions(ids)
    dropped = 0
    if kinds.drops:
        drop = kinds.dropped[meta] & known
        dropped = int(np.count_nonzero(drop))
        kept = np.flatnonzero(~drop)
        meta, at, known, heads, ends = meta[kept], at[kept], known[kept], heads[kept], ends[kept]
    offset, at, placed = number_field(buffer, at, ends, _OFFSET_TAG)
    duration, at, _ = number_field(buffer, at, ends, _DURATION_TAG)
    usual = known & placed & ((at == ends) | ((at < ends) & (data[at] == _STATS_TAG)))
    occurrences = {}
    for row in np.flatnonzero(~usual).tolist():
        key, offset[row], duration[row], count, at[row] = _read_one(view, int(heads[row]), int(ends[row]), base)
        meta[row] = kinds.positions(np.array([key], np.int64))[0]
        if count > 0:
            occurrences[row] = count
    if len(meta) and int((offset | duration).view(np.uint64).max()) > _MAX_PS:
        raise FormatError(f"an event behind byte {base} lies or lasts beyond all bounds")
    start_ns = offset // _PS_PER_NS
    dur_ns = (offset + duration) // _PS_PER_NS - start_ns
    rem = duration - dur_ns * _PS_PER_NS
    return EventBlock(
        meta=meta.astype(np.int32),
        start_ns=start_ns,
        dur_ns=dur_ns,
        rem_ps=rem.astype(np.int16) if rem.any() else None,
        stats_at=at + base,
        stats_size=(ends - at).astype(np.int32),
        occurrences=occurrences,
        likely={key: _events_at(heads, ends, where) for key, where in places.items()},
        numbers={},
        dropped=dropped,
    )


def _events_at(heads: I64, ends: I64, positions: I64) -> I64:
    """The event that holds each of some positions, if any. All rise."""
    if not len(heads):
        return heads
    positions = positions[slice(*np.searchsorted(positions, (heads[0], ends[-1])))]
    rank = np.searchsorted(heads, positions, "right") - 1
    return rank[positions < ends[rank]]


def _take_numbers(buffer: Buffer, block: EventBlock, key: int) -> None:
    """Read the stat of events that have its bytes once, if it is a number; the others remain likely."""
    once, several = rows_between([block.likely[key]], 0, len(block))
    once = once[block.stats_size[once] > 0]
    at = block.stats_at[once] - buffer.base
    walked = walk(buffer, once, at, at + block.stats_size[once], [key])
    tags = buffer.data[walked.at]
    numbers = (tags == _INT_TAG) | (tags == _UINT_TAG)
    whole = np.flatnonzero(numbers)
    block.numbers[key] = walked.rows[whole], decode(buffer, walked.at[whole] + 1)[0]
    others = np.concatenate([walked.rows[~numbers], walked.left[0], several, several])
    block.likely[key] = np.sort(others)


def _read_one(view: memoryview, head: int, end: int, base: int) -> tuple[int, int, int, int, int]:
    """One event in any order of its fields: id, offset, duration, occurrences, start of its fields."""
    _, content = varint(view, base + head + 1, base + end)
    numbers = {EVENT_ID: 0, EVENT_OFFSET: 0, EVENT_DURATION: 0, EVENT_OCCURRENCES: 0}
    for number, wire, value, _ in fields(view, content, base + end):
        if wire == VARINT and number in numbers:
            numbers[number] = signed(value)
    return (
        numbers[EVENT_ID],
        numbers[EVENT_OFFSET],
        numbers[EVENT_DURATION],
        numbers[EVENT_OCCURRENCES],
        content - base,
    )
