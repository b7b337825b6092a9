"""Values of events' stats: numbers and strings of a window of an XSpace, and the column made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.readers.protobuf.codec import BYTES, FIXED64, VARINT
from stepscope.readers.protobuf.varints import decode
from stepscope.readers.xplane.messages import STAT_DOUBLE, STAT_INT, STAT_REF, STAT_TEXT, STAT_UINT, tag
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace_stats import StatColumn, no_stat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.readers.protobuf.varints import Buffer
    from stepscope.readers.stat_columns import Strings
    from stepscope.tables.optrace import I8
    from stepscope.tables.records import I64

_MAX_TABLE = 1 << 20
_NONE, _INT, _DOUBLE, _TEXT = range(4)
_DOUBLE_BYTES = 8
_UINT_TAG, _INT_TAG, _REF_TAG = tag(STAT_UINT, VARINT), tag(STAT_INT, VARINT), tag(STAT_REF, VARINT)
_DOUBLE_TAG, _TEXT_TAG = tag(STAT_DOUBLE, FIXED64), tag(STAT_TEXT, BYTES)


class FoundStats(Struct, frozen=True, kw_only=True):
    """Stats in file order. Positions in a window. Shapes: int64[stat]."""

    rows: I64
    ids: I64
    at: I64
    """Position of the value's tag; the end of the stat if it has no value."""
    end: I64

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: I64) -> FoundStats:
        """Some of them."""
        return FoundStats(rows=self.rows[index], ids=self.ids[index], at=self.at[index], end=self.end[index])

    @classmethod
    def concat(cls, parts: Sequence[FoundStats]) -> FoundStats:
        """All of them."""
        filled = [part for part in parts if len(part)]
        if len(filled) == 1:
            return filled[0]
        none = np.empty(0, np.int64)
        return cls(
            rows=np.concatenate([none, *(p.rows for p in parts)]),
            ids=np.concatenate([none, *(p.ids for p in parts)]),
            at=np.concatenate([none, *(p.at for p in parts)]),
            end=np.concatenate([none, *(p.end for p in parts)]),
        )


class Values(Struct, frozen=True, kw_only=True):
    """Stats with their values: a number, the bits of a double, or the number of a string. Shapes: int64[stat]."""

    rows: I64
    ids: I64
    kind: I8
    value: I64

    def take(self, index: I64) -> Values:
        """Some of them."""
        return Values(rows=self.rows[index], ids=self.ids[index], kind=self.kind[index], value=self.value[index])


def values_of(window: Buffer, found: FoundStats, stat_names: Mapping[int, str], strings: Strings) -> Values:
    """The values of the stats; ``_NONE`` for one without a value, or with bytes."""
    tags = window.data[found.at]
    tags[found.at >= found.end] = 0
    if ((tags == _INT_TAG) | (tags == _UINT_TAG)).all():
        value, kind = decode(window, found.at + 1)[0], np.full(len(tags), _INT, np.int8)
        return Values(rows=found.rows, ids=found.ids, kind=kind, value=value)
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
    value[texts], kind[texts] = _texts(window, first, last, strings), _TEXT
    return Values(rows=found.rows, ids=found.ids, kind=kind, value=value)


def numbers_between(rows: I64, numbers: I64, first: int, last: int) -> Values:
    """The numbers of rising rows, for the rows between two bounds."""
    between = slice(*np.searchsorted(rows, (first, last)))
    rows = rows[between]
    return Values(rows=rows, ids=rows, kind=np.full(len(rows), _INT, np.int8), value=numbers[between])


def held(values: Values) -> Values:
    """The values of stats that have one."""
    held = np.flatnonzero(values.kind != _NONE)
    return values if len(held) == len(values.kind) else values.take(held)


def _texts(window: Buffer, first: I64, last: I64, strings: Strings) -> I64:
    """Numbers of the strings between positions. Strings repeat: each is decoded once."""
    if not len(first):
        return first
    begin, number = int(first.min()), _Decoded(strings)
    content = bytes(memoryview(window.content)[begin : int(last.max())])
    spans = zip((first - begin).tolist(), (last - begin).tolist(), strict=True)
    return np.array([number[content[a:b]] for a, b in spans], np.int64)


class _Decoded(dict[bytes, int]):
    """Numbers of strings by their bytes."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings

    def __missing__(self, text: bytes) -> int:
        number = self[text] = self._strings.add(text.decode("utf-8", "replace"))
        return number


def _names_of(refs: I64, stat_names: Mapping[int, str], strings: Strings) -> I64:
    """Numbers of the strings that ids of stat names stand for."""
    if not len(refs) or refs.min() < 0 or refs.max() > _MAX_TABLE:
        return np.array([strings.add(stat_names.get(ref, "")) for ref in refs.tolist()], np.int64)
    table = np.zeros(int(refs.max()) + 1, np.int64)
    for ref in np.flatnonzero(np.bincount(refs)).tolist():
        table[ref] = strings.add(stat_names.get(ref, ""))
    return table[refs]


def column_of(name: str, parts: list[Values], strings: Strings) -> StatColumn:
    """Values of one stat as a column, by row. ``parts`` is emptied."""
    if not any(len(part.rows) for part in parts):
        return no_stat(name)
    rows = np.concatenate([part.rows for part in parts])
    kind = np.concatenate([part.kind for part in parts])
    value = np.concatenate([part.value for part in parts])
    parts.clear()
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
