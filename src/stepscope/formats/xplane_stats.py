"""The stats of an XSpace's events, read when they are asked for.

The file stays open and each event knows where its stats lie. A stat of one name is found in two steps: its id is looked
for as bytes (``xplane_stat_ids``), which passes over the file at memory speed and can only find too much; the events so
found are then walked through, all of them one stat at a time and as far as the id was found, which says what is true.
Stats that say what an event is are looked for while the events are read (``StatPlace.likely``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.errors import FormatError
from stepscope.formats.byte_source import ByteSource, Windows
from stepscope.formats.protobuf import BYTES, FIXED64, VARINT, signed
from stepscope.formats.stat_columns import Strings, column_of_pairs
from stepscope.formats.varints import Buffer, decode
from stepscope.formats.wire_fields import fields
from stepscope.formats.xplane_stat_ids import ALIASES, passed, perhaps, rows_between, where_in
from stepscope.formats.xplane_wire import (
    EVENT_STATS,
    STAT_DOUBLE,
    STAT_ID,
    STAT_INT,
    STAT_REF,
    STAT_TEXT,
    STAT_UINT,
    tag,
)
from stepscope.model.optrace_stats import StatColumn, StatName, no_stat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.formats.xplane_wire import WirePlane
    from stepscope.model.optrace import I8, I32
    from stepscope.model.optrace_stats import PlainStat
    from stepscope.model.records import I64

_WINDOW_BYTES = 1 << 20
"""Read at a time: it stays in the processor's cache."""
_KEPT_VALUES = 1 << 18
_MAX_TABLE = 1 << 20
_MORE = 0x80
_STATS_TAG = tag(EVENT_STATS, BYTES)
_ID_TAG = tag(STAT_ID, VARINT)
_NONE, _INT, _DOUBLE, _TEXT = range(4)
_DOUBLE_BYTES = 8
_UINT_TAG, _INT_TAG, _REF_TAG = tag(STAT_UINT, VARINT), tag(STAT_INT, VARINT), tag(STAT_REF, VARINT)
_DOUBLE_TAG, _TEXT_TAG = tag(STAT_DOUBLE, FIXED64), tag(STAT_TEXT, BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatPlace:
    """A plane's rows: ``first`` to ``last`` (exclusive) of all events, and what its stat ids mean."""

    first: int
    last: int
    plane: WirePlane
    ids: Mapping[str, Sequence[int]]
    """Of each stat by name."""
    likely: Mapping[int, I64]
    """Of stats that were sought while the events were read, by id: rows of the events that may have them, rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaStats:
    """The stats of one kind of event."""

    row: int
    stats: Mapping[str, PlainStat]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Stats as they lie in the file. Positions in a window. Shapes: int64[stat]."""

    rows: I64
    ids: I64
    at: I64
    """Where the value's tag is; where the stat ends if it has no value."""
    end: I64

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: I64) -> _Found:
        """Some of them."""
        return _Found(rows=self.rows[index], ids=self.ids[index], at=self.at[index], end=self.end[index])

    @classmethod
    def concat(cls, parts: Sequence[_Found]) -> _Found:
        """All of them."""
        none = np.empty(0, np.int64)
        return cls(
            rows=np.concatenate([none, *(p.rows for p in parts)]),
            ids=np.concatenate([none, *(p.ids for p in parts)]),
            at=np.concatenate([none, *(p.at for p in parts)]),
            end=np.concatenate([none, *(p.end for p in parts)]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Stats with their values: a number, the bits of a double, or the number of a text. Shapes: int64[stat]."""

    rows: I64
    ids: I64
    kind: I8
    value: I64

    def take(self, index: I64) -> _Values:
        """Some of them."""
        return _Values(rows=self.rows[index], ids=self.ids[index], kind=self.kind[index], value=self.value[index])


class XplaneStats:
    """A ``StatReader`` over an XSpace file."""

    def __init__(
        self,
        *,
        source: ByteSource,
        at: I64,
        size: I64 | I32,
        places: Sequence[StatPlace],
        metas: Sequence[MetaStats],
        occurrences: Mapping[int, int],
    ) -> None:
        """``at``, ``size`` int[event]: where in the file the stats of each event begin, and how long they are."""
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
        """See ``StatReader``. Cost: passes over all stats, once."""
        if self._names is None:
            self._names = tuple(dict.fromkeys(column.name for column in self.columns()))
        return self._names

    def meta_names(self) -> Sequence[str]:
        """See ``StatReader``."""
        return tuple(self._meta_columns())

    def of_events(self, name: str, first: int = 0, last: int | None = None) -> StatColumn:
        """See ``StatReader``. What was read once and is small is kept."""
        if name == StatName.OCCURRENCES:
            return self._occurrences_column().between(first, last)
        last = len(self._at) if last is None else last
        column = self._kept.get((name, first, last))
        if column is None:
            column = self._read_column(name, first, last)
            if len(column) <= _KEPT_VALUES:
                self._kept[name, first, last] = column
        return column

    def _read_column(self, name: str, first: int, last: int) -> StatColumn:
        strings = Strings()
        found: list[_Values] = []
        for place in self._places:
            wanted = place.ids.get(name)
            if wanted:
                begin, end = max(first, place.first), min(last, place.last)
                if all(key in place.likely for key in wanted):
                    rows = rows_between([place.likely[key] for key in wanted], begin, end)
                    rows = rows[self._size[rows] > 0]
                    found.extend(self._read(rows, place, np.array(wanted, np.int64), strings, sought=True))
                else:
                    rows = self._with_stats(begin, end)
                    found.extend(self._read(rows, place, np.array(wanted, np.int64), strings))
        return _column(name, found, strings)

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
                    column = _column(name, [values.take(np.flatnonzero(np.isin(values.ids, keys)))], strings)
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
        """The events of some rows that have stats."""
        rows: I64 = np.flatnonzero(self._size[first:last]) + first if first < last else np.empty(0, np.int64)
        return rows

    def _windows(self, rows: I64) -> Iterator[tuple[Buffer, I64]]:
        """The bytes of some events' stats, window by window, with those rows that lie in it, by position."""
        starts = self._at[rows]
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            rows, starts = rows[order], starts[order]
        windows = Windows(self._source)
        first = 0
        while first < len(rows):
            last = int(np.searchsorted(starts, starts[first] + _WINDOW_BYTES))
            chosen = rows[first:last]
            yield windows.at(int(starts[first]), int((self._at[chosen] + self._size[chosen]).max())), chosen
            first = last

    def _read(
        self, rows: I64, place: StatPlace, wanted: I64 | None, strings: Strings, *, sought: bool = False
    ) -> Iterator[_Values]:
        """The stats of some events, of some ids or of all, a window at a time; ``sought``: ``rows`` may have them."""
        for window, within in self._windows(rows):
            chosen, at = within, self._at[within] - window.base
            end = until = at + self._size[chosen]
            if wanted is not None and not sought:
                likely, first, until = perhaps(window, at, end, wanted)
                chosen, at, end = chosen[likely], passed(window, at[likely], first), end[likely]
            found = self._walk(window, chosen, at, end, until, wanted)
            values = _values(window, found, place.plane.stat_names, strings)
            held = np.flatnonzero(values.kind != _NONE)
            yield values if len(held) == len(values.kind) else values.take(held)

    def _walk(self, window: Buffer, rows: I64, cursor: I64, end: I64, until: I64, wanted: I64 | None) -> _Found:
        """The stats between ``cursor`` and ``end`` that begin before ``until``, one of each row at a time.

        Raises:
            FormatError: one of them is damaged.
        """
        parts: list[_Found] = []
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
        return _Found.concat(parts)

    def _stats_at(self, window: Buffer, rows: I64, cursor: I64, end: I64) -> _Found:
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
        return _Found(rows=rows, ids=ids, at=at, end=stop)


def _one_stat(view: memoryview, first: int, last: int) -> tuple[int, int]:
    """Id of a stat, and where the value's tag is, whatever the order of its fields."""
    key, at, begin = 0, last, first
    for number, wire, value, end in fields(view, first, last):
        if number == STAT_ID and wire == VARINT:
            key = signed(value)
        else:
            at = begin
        begin = end
    return key, at


def _values(window: Buffer, found: _Found, stat_names: Mapping[int, str], strings: Strings) -> _Values:
    """What the stats say; ``_NONE`` where one has no value, or bytes."""
    tags = window.data[found.at]
    tags[found.at >= found.end] = 0
    if ((tags == _INT_TAG) | (tags == _UINT_TAG)).all():
        value, kind = decode(window, found.at + 1)[0], np.full(len(tags), _INT, np.int8)
        return _Values(rows=found.rows, ids=found.ids, kind=kind, value=value)
    kind = np.full(len(tags), _NONE, np.int8)
    value = np.zeros(len(tags), np.int64)
    ints = np.flatnonzero((tags == _INT_TAG) | (tags == _UINT_TAG))
    value[ints], kind[ints] = decode(window, found.at[ints] + 1)[0], _INT
    doubles = np.flatnonzero((tags == _DOUBLE_TAG) & (found.end - found.at > _DOUBLE_BYTES))
    value[doubles], kind[doubles] = window.words[found.at[doubles] + 1].view(np.int64), _DOUBLE
    refs = np.flatnonzero(tags == _REF_TAG)
    value[refs], kind[refs] = _names_of(decode(window, found.at[refs] + 1)[0], stat_names, strings), _TEXT
    texts = np.flatnonzero(tags == _TEXT_TAG)
    length, first = decode(window, found.at[texts] + 1)
    last = first + length
    wrong = (length < 0) | (last > found.end[texts])
    if wrong.any():
        raise FormatError(f"the text at byte {int(first[wrong][0]) + window.base} reaches beyond the end of its stat")
    spans = zip(first.tolist(), last.tolist(), strict=True)
    value[texts] = np.fromiter((strings.add(window.text(a, b)) for a, b in spans), np.int64, len(texts))
    kind[texts] = _TEXT
    return _Values(rows=found.rows, ids=found.ids, kind=kind, value=value)


def _names_of(refs: I64, stat_names: Mapping[int, str], strings: Strings) -> I64:
    """Numbers of the texts that ids of stat names stand for."""
    if not len(refs) or refs.min() < 0 or refs.max() > _MAX_TABLE:
        return np.array([strings.add(stat_names.get(ref, "")) for ref in refs.tolist()], np.int64)
    table = np.zeros(int(refs.max()) + 1, np.int64)
    for ref in np.flatnonzero(np.bincount(refs)).tolist():
        table[ref] = strings.add(stat_names.get(ref, ""))
    return table[refs]


def _column(name: str, parts: Sequence[_Values], strings: Strings) -> StatColumn:
    if not any(len(part.rows) for part in parts):
        return no_stat(name)
    rows = np.concatenate([part.rows for part in parts])
    kind = np.concatenate([part.kind for part in parts])
    value = np.concatenate([part.value for part in parts])
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, kind, value = rows[order], kind[order], value[order]
    if (kind == _TEXT).any():
        for i in np.flatnonzero(kind != _TEXT).tolist():
            plain = value[i : i + 1].view(np.float64)[0] if kind[i] == _DOUBLE else value[i]
            value[i] = strings.add(str(plain.item()))
        used, codes = np.unique(value, return_inverse=True)
        texts = tuple(strings.text(code) for code in used.tolist())
        return StatColumn(name=name, rows=rows, values=codes.astype(np.int64), texts=texts)
    if (kind == _DOUBLE).any():
        floats = np.where(kind == _DOUBLE, value.view(np.float64), value.astype(np.float64))
        return StatColumn(name=name, rows=rows, values=floats)
    return StatColumn(name=name, rows=rows, values=value)


def _named(names: Mapping[int, str], key: int) -> str:
    name = names.get(key, str(key))
    return ALIASES.get(name, name)
