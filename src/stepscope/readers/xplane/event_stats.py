"""The stats of an XSpace's events, read on request.

The file stays open and each event knows the position of its stats. A stat of one name is found in two steps: its id is
searched for as bytes (``stat_ids``), which scans the file at memory speed and can only find too much; the stats
of the events found are then walked, one stat of all events at a time and as far as the id was found, which removes
false matches. Some stats are searched for while the events are read (``StatPlace.likely``). Stats that most of the
requested events have are found by walking until they come (``of_rows``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.readers.byte_source import ByteSource, Windows
from stepscope.readers.protobuf.codec import BYTES, VARINT, signed
from stepscope.readers.protobuf.varints import Buffer, decode
from stepscope.readers.protobuf.wire_fields import fields
from stepscope.readers.stat_columns import Strings, column_of_pairs
from stepscope.readers.xplane.messages import EVENT_STATS, STAT_ID, tag
from stepscope.readers.xplane.stat_ids import ALIASES, passed, perhaps, rows_between, where_in
from stepscope.readers.xplane.stat_values import FoundStats, Values, column_of, held, numbers_between, values_of
from stepscope.readers.xplane.stat_walk import walk
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace_stats import StatColumn, StatName, no_stat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.readers.xplane.messages import WirePlane
    from stepscope.tables.optrace import I32
    from stepscope.tables.optrace_stats import PlainStat
    from stepscope.tables.records import I64

_WINDOW_BYTES = 1 << 20
"""Bytes read at a time: they stay in the processor's cache."""
_KEPT_VALUES = 1 << 18
_MORE = 0x80
_STATS_TAG = tag(EVENT_STATS, BYTES)
_ID_TAG = tag(STAT_ID, VARINT)


class StatPlace(Struct, frozen=True, kw_only=True):
    """A plane's rows: ``first`` to ``last`` (exclusive) of all events, and the meaning of its stat ids."""

    first: int
    last: int
    plane: WirePlane
    ids: Mapping[str, Sequence[int]]
    """Ids of each stat, by name."""
    likely: Mapping[int, I64]
    """Rows of events that may have a stat searched for while the events were read, by id: rising, each as often as the
    id was found in it."""
    numbers: Mapping[int, tuple[I64, I64]]
    """Stats that were read with the events, by id: rows, rising, and numbers."""


class MetaStats(Struct, frozen=True, kw_only=True):
    """The stats of one kind of event."""

    row: int
    stats: Mapping[str, PlainStat]


class XplaneStats:
    """A ``StatReader`` over an XSpace file."""

    def __init__(
        self,
        *,
        source: ByteSource,
        at: I64 | I32,
        size: I64 | I32,
        places: Sequence[StatPlace],
        metas: Sequence[MetaStats],
        occurrences: Mapping[int, int],
    ) -> None:
        """Store ``at``, ``size`` int[event]: position in the file and length of each event's stats."""
        self._source = source
        self._at = at
        self._size = size
        self._places = places
        self._metas = metas
        self._occurrences = occurrences
        self._kept: dict[tuple[str, int, int], StatColumn] = {}
        self._of_metas: dict[str, StatColumn] | None = None
        self._names: tuple[str, ...] | None = None

    def event_names(self) -> Sequence[str]:
        """See ``StatReader``. Cost: one scan over all stats."""
        if self._names is None:
            self._names = tuple(dict.fromkeys(column.name for column in self.columns()))
        return self._names

    def meta_names(self) -> Sequence[str]:
        """See ``StatReader``."""
        return tuple(self._meta_columns())

    def of_events(self, name: str, first: int = 0, last: int | None = None) -> StatColumn:
        """See ``StatReader``. Small results are cached, and stats read with the events are available."""
        if name == StatName.OCCURRENCES:
            return self._occurrences_column().between(first, last)
        last = len(self._at) if last is None else last
        column = self._kept.get((name, first, last))
        if column is None:
            column = self._read_column(name, first, last)
            at_hand = any(key in place.numbers for place in self._places for key in place.ids.get(name, ()))
            if len(column) <= _KEPT_VALUES and not at_hand:
                self._kept[name, first, last] = column
        return column

    def of_rows(self, name: str, rows: I64) -> StatColumn:
        """See ``StatReader``."""
        strings = Strings()
        found: list[Values] = []
        for place in self._places:
            mine = rows[slice(*np.searchsorted(rows, (place.first, place.last)))]
            if len(mine) and name in place.ids:
                wanted = np.array(place.ids[name], np.int64)
                found += self._first_of(mine[self._size[mine] > 0], place, wanted, strings)
        column = column_of(name, found, strings)
        return column if (column.rows[1:] > column.rows[:-1]).all() else column.of(rows)

    def _first_of(self, rows: I64, place: StatPlace, wanted: I64, strings: Strings) -> Iterator[Values]:
        """The first stat of some ids of each event, a window at a time; for some events also those after it."""
        for window, within in self._windows(rows):
            at = self._starts(within) - window.base
            walked = walk(window, within, at, at + self._size[within], wanted.tolist())
            usual = FoundStats(rows=walked.rows, ids=walked.rows, at=walked.at, end=walked.end)
            others = self._walk(window, *walked.left, walked.left[2], wanted)
            yield held(values_of(window, FoundStats.concat([usual, others]), place.plane.stat_names, strings))

    def _read_column(self, name: str, first: int, last: int) -> StatColumn:
        strings = Strings()
        found = [values for place in self._places for values in self._of_place(place, name, first, last, strings)]
        return column_of(name, found, strings)

    def _of_place(self, place: StatPlace, name: str, first: int, last: int, strings: Strings) -> Iterator[Values]:
        wanted = place.ids.get(name)
        if wanted is None:
            return
        begin, end = max(first, place.first), min(last, place.last)
        if all(key in place.likely for key in wanted):
            yield from (numbers_between(*place.numbers[key], begin, end) for key in wanted if key in place.numbers)
            once, several = rows_between([place.likely[key] for key in wanted], begin, end)
            ids = np.array(wanted, np.int64)
            yield from self._first_of(once[self._size[once] > 0], place, ids, strings)
            yield from self._read(several[self._size[several] > 0], place, ids, strings, sought=True)
        else:
            yield from self._read(self._with_stats(begin, end), place, np.array(wanted, np.int64), strings)

    def of_metas(self, name: str) -> StatColumn:
        """See ``StatReader``."""
        return self._meta_columns().get(name) or no_stat(name)

    def columns(self) -> Iterator[StatColumn]:
        """See ``StatReader``."""
        for place in self._places:
            names = place.plane.stat_names
            strings = Strings()
            for values in self._read(self._with_stats(place.first, place.last), place, None, strings):
                by_name: dict[str, list[int]] = {}
                for key in np.unique(values.ids).tolist():
                    by_name.setdefault(_named(names, key), []).append(key)
                for name, keys in by_name.items():
                    column = column_of(name, [values.take(np.flatnonzero(np.isin(values.ids, keys)))], strings)
                    if len(column):
                        yield column
        if self._occurrences:
            yield self._occurrences_column()

    def _occurrences_column(self) -> StatColumn:
        rows = np.array(sorted(self._occurrences), np.int64)
        values = np.array([self._occurrences[row] for row in rows.tolist()], np.int64)
        return StatColumn(name=StatName.OCCURRENCES, rows=rows, values=values)

    def _meta_columns(self) -> dict[str, StatColumn]:
        if self._of_metas is None:
            pairs: dict[str, list[tuple[int, PlainStat]]] = {}
            for meta in self._metas:
                for name, value in meta.stats.items():
                    pairs.setdefault(name, []).append((meta.row, value))
            self._of_metas = {name: column_of_pairs(name, found) for name, found in pairs.items()}
        return self._of_metas

    def _with_stats(self, first: int, last: int) -> I64:
        """The events among some rows that have stats."""
        rows: I64 = np.flatnonzero(self._size[first:last]) + first if first < last else np.empty(0, np.int64)
        return rows

    def _starts(self, rows: I64) -> I64:
        """Positions in the file of some events' stats."""
        return self._at[rows].astype(np.int64, copy=False)

    def _windows(self, rows: I64) -> Iterator[tuple[Buffer, I64]]:
        """The bytes of some events' stats, window by window, with the rows within it, by position."""
        starts = self._starts(rows)
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            rows, starts = rows[order], starts[order]
        windows = Windows(self._source)
        first = 0
        while first < len(rows):
            last = int(np.searchsorted(starts, starts[first] + _WINDOW_BYTES))
            chosen = rows[first:last]
            yield windows.at(int(starts[first]), int((starts[first:last] + self._size[chosen]).max())), chosen
            first = last

    def _read(
        self, rows: I64, place: StatPlace, wanted: I64 | None, strings: Strings, *, sought: bool = False
    ) -> Iterator[Values]:
        """The stats of some events, of some ids or of all, a window at a time; ``sought``: ``rows`` may have them."""
        for window, within in self._windows(rows):
            chosen, at = within, self._starts(within) - window.base
            end = until = at + self._size[chosen]
            if wanted is not None and not sought:
                likely, first, until = perhaps(window, at, end, wanted)
                chosen, at, end = chosen[likely], passed(window, at[likely], first), end[likely]
            found = self._walk(window, chosen, at, end, until, wanted)
            yield held(values_of(window, found, place.plane.stat_names, strings))

    def _walk(self, window: Buffer, rows: I64, cursor: I64, end: I64, until: I64, wanted: I64 | None) -> FoundStats:
        """The stats between ``cursor`` and ``end`` that begin before ``until``, one per row at a time.

        Raises:
            FormatError: one of them is damaged.
        """
        parts: list[FoundStats] = []
        while len(rows):
            is_stat = window.data[cursor] == _STATS_TAG
            if is_stat.all():
                found = self._stats_at(window, rows, cursor, end)
                cursor = found.end
                parts.append(found if wanted is None else found.take(where_in(found.ids, wanted)))
            else:
                cursor = cursor.copy()
                for i in np.flatnonzero(~is_stat).tolist():
                    *_, after = next(fields(self._source.view, int(cursor[i]) + window.base, int(end[i]) + window.base))
                    cursor[i] = after - window.base
            live = np.flatnonzero(cursor < until)
            if len(live) < len(rows):
                rows, cursor, end, until = rows[live], cursor[live], end[live], until[live]
        return FoundStats.concat(parts)

    def _stats_at(self, window: Buffer, rows: I64, cursor: I64, end: I64) -> FoundStats:
        """The stat that begins at each cursor."""
        data = window.data
        size, content = data[cursor + 1].astype(np.int64), cursor + 2
        large = np.flatnonzero(size >= _MORE)
        if len(large):
            size[large], content[large] = decode(window, cursor[large] + 1)
        stop = content + size
        wrong = (stop > end) | (size < 0)
        if wrong.any():
            where = int(cursor[wrong][0]) + window.base
            raise FormatError(f"the stat at byte {where} reaches beyond the end of its event")
        usual = (data[content] == _ID_TAG) & (size > 1)
        ids, at = data[content + 1].astype(np.int64), content + 2
        large = np.flatnonzero(usual & (ids >= _MORE))
        if len(large):
            ids[large], at[large] = decode(window, content[large] + 1)
        for i in np.flatnonzero(~usual | (at > stop)).tolist():
            ids[i], place = _one_stat(self._source.view, int(content[i]) + window.base, int(stop[i]) + window.base)
            at[i] = place - window.base
        return FoundStats(rows=rows, ids=ids, at=at, end=stop)


def _one_stat(view: memoryview, first: int, last: int) -> tuple[int, int]:
    """Id of a stat, and position of the value's tag, in any order of its fields."""
    key, at, begin = 0, last, first
    for number, wire, value, end in fields(view, first, last):
        if number == STAT_ID and wire == VARINT:
            key = signed(value)
        else:
            at = begin
        begin = end
    return key, at


def _named(names: Mapping[int, str], key: int) -> str:
    name = names.get(key, str(key))
    return ALIASES.get(name, name)
