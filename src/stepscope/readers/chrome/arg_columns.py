"""The arguments of trace events as columns of stats.

Events of one kind have the same names of arguments in the same order, so the values of each name stand together after
one look at the names. Whole numbers are decoded as an array; other values, which repeat, once each.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.readers.chrome import json_values, kineto_devices
from stepscope.readers.stat_columns import Strings, column_of_codes, wrapped
from stepscope.tables.optrace_stats import StatColumn, StatName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stepscope.readers.chrome.trace_json import Json
    from stepscope.tables.optrace import I32
    from stepscope.tables.optrace_stats import PlainStat
    from stepscope.tables.records import F64, I64, Bool

_NAMES = {
    "correlation": StatName.CORRELATION_ID,
    "Input Dims": StatName.SHAPE,
    "bytes": StatName.TRANSFER_BYTES,
    "Bytes": "bytes",
    "External id": "external_id",
    "external id": "external_id",
}
"""Names of arguments, with their names in the model."""
T = TypeVar("T")
_DIGITS = b"-0123456789"
_INTS = msgspec.json.Decoder(list[int])
_BETWEEN = b"\0"
"""Byte that no JSON has."""
AFTER_ARGS = 1 << 20
"""Place in an event of what follows its arguments."""


class Part(Struct, frozen=True, kw_only=True):
    """Values of one stat. Shapes: [value]."""

    rows: I32
    """Events in the file's order."""
    values: I64 | I32
    """Whole numbers, or indices into ``plain``."""
    plain: Sequence[PlainStat | None] | None = None
    at: int
    """Place among the stats of an event."""

    def among(self, kept: Bool) -> Part:
        """Some of the values."""
        return replace(self, rows=self.rows[kept], values=self.values[kept])

    def without_null(self) -> Part:
        """The values that are not null."""
        if self.plain is None or None not in self.plain:
            return self
        return self.among(np.array([value is not None for value in self.plain], np.bool_)[self.values])


class _Values(dict[bytes, int]):
    """The number of each JSON value of one argument, each decoded once."""

    def __init__(self) -> None:
        super().__init__()
        self.plain: list[PlainStat | None] = []

    def __missing__(self, text: bytes) -> int:
        self.plain.append(json_values.plain(msgspec.json.decode(text)))
        number = self[text] = len(self.plain) - 1
        return number


class _Launches(dict["tuple[bytes, ...]", int]):
    """The number of each launch of a kernel, by the values of some arguments."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self.plain: list[PlainStat | None] = []

    def __missing__(self, texts: tuple[bytes, ...]) -> int:
        args = {name: msgspec.json.decode(text) for name, text in zip(self.names, texts, strict=True)}
        self.plain.append(kineto_devices.launch(args))
        number = self[texts] = len(self.plain) - 1
        return number


class _Shapes(dict["tuple[str, ...]", "tuple[list[int], list[msgspec.Raw]]"]):
    """Rows and values, one event after the other, by names."""

    def __missing__(self, names: tuple[str, ...]) -> tuple[list[int], list[msgspec.Raw]]:
        found = self[names] = ([], [])
        return found


class ArgBatch:
    """Arguments of events by the names that they have."""

    def __init__(self) -> None:
        """Begin without arguments."""
        self.shapes = _Shapes()

    def add(self, rows: I64, args: Sequence[Json]) -> None:
        """Add the arguments of events; what is no object is none. Shapes: both [event]."""
        shapes = self.shapes
        for row, one in zip(rows.tolist(), args, strict=True):
            if type(one) is dict and one:
                own, values = shapes[tuple(one)]
                own.append(row)
                values += one.values()


class ArgColumns:
    """Collects the arguments of events."""

    def __init__(self) -> None:
        """Begin without arguments."""
        self.stats: dict[str, list[Part]] = defaultdict(list)
        """Parts of each stat. Of two values of one event that of the later part counts."""
        self._values: dict[str, _Values] = defaultdict(_Values)
        self._launches: dict[tuple[str, ...], _Launches] = {}

    def take(self, batch: ArgBatch) -> None:
        """Add the arguments of events.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError: a value cannot be decoded; then none is added.
        """
        found: list[tuple[str, Part]] = []
        for names, (rows, values) in batch.shapes.items():
            own = np.array(rows, np.int32)
            texts = {name: values[i :: len(names)] for i, name in enumerate(names)}
            for i, (name, raws) in enumerate(texts.items()):
                found.append((_NAMES.get(name, name), self._part(name, own, raws, i)))
            if kineto_devices.GRID in texts:
                found.append((StatName.KERNEL_DETAILS, self._launched(own, texts)))
        for name, part in found:
            self.stats[name].append(part)

    def _part(self, name: str, rows: I32, raws: Sequence[msgspec.Raw], at: int) -> Part:
        if bytes(raws[0])[:1] in _DIGITS:
            try:
                return Part(rows=rows, values=np.array(_INTS.decode(b"[" + b",".join(raws) + b"]"), np.int64), at=at)
            except (msgspec.ValidationError, OverflowError):
                pass
        values = self._values[name]
        return Part(rows=rows, values=_numbers(values, _split(raws)), plain=values.plain, at=at)

    def _launched(self, rows: I32, texts: Mapping[str, Sequence[msgspec.Raw]]) -> Part:
        """What the arguments of kernels say of their launch, in one stat."""
        names = tuple(name for name in kineto_devices.OF_LAUNCH if name in texts)
        launches = self._launches.setdefault(names, _Launches(names))
        values = _numbers(launches, list(zip(*(_split(texts[name]) for name in names), strict=True)))
        return Part(rows=rows, values=values, plain=launches.plain, at=AFTER_ARGS)


def _split(raws: Sequence[msgspec.Raw]) -> list[bytes]:
    return _BETWEEN.join(raws).split(_BETWEEN)


def _numbers(numbers: dict[T, int], keys: Sequence[T]) -> I32:
    return np.fromiter(map(numbers.__getitem__, keys), np.int32, len(keys))


def columns(stats: dict[str, list[Part]], number: I64, row_of: I64) -> dict[str, StatColumn]:
    """The stats of the op trace's events, in the order in which the events, as they were added, show them.

    Args:
        stats: parts by name; emptied.
        number: number of each event in order of adding.
        row_of: row of each number in the op trace.
    """
    ordered: list[tuple[int, int, str]] = []
    for name, parts in stats.items():
        parts[:] = [part for part in map(Part.without_null, parts) if len(part.rows)]
        firsts = [(int(number[part.rows].min()), part.at) for part in parts]
        if firsts:
            ordered.append((*min(firsts), name))
    final = row_of[np.maximum(number, 0)] if len(row_of) else number
    return {name: _column(name, stats.pop(name), final) for *_, name in sorted(ordered)}


def _column(name: str, parts: list[Part], final: I64) -> StatColumn:
    parts = _merged(_last_of_each(parts, final))
    rows = np.concatenate([final[part.rows] for part in parts])
    order = np.argsort(rows, kind="stable")
    used = [[] if part.plain is None else np.flatnonzero(np.bincount(part.values)).tolist() for part in parts]
    kinds = {type(part.plain[i]) for part, few in zip(parts, used, strict=True) if part.plain for i in few}
    if str in kinds:
        codes, texts = _texts(parts, used)
        return column_of_codes(name, rows[order], codes[order], texts)
    values = np.concatenate(
        [_numeric(part, few, fractions=float in kinds) for part, few in zip(parts, used, strict=True)]
    )
    return StatColumn(name=name, rows=rows[order], values=values[order])


def _last_of_each(parts: list[Part], final: I64) -> list[Part]:
    """The parts without values that a later one replaces."""
    rows = np.concatenate([final[part.rows] for part in parts])
    order = np.argsort(rows, kind="stable")
    again = rows[order[1:]] == rows[order[:-1]]
    if not again.any():
        return parts
    kept = np.ones(len(rows), np.bool_)
    kept[order[:-1][again]] = False
    bounds = np.cumsum([len(part.rows) for part in parts])[:-1]
    return [part.among(mine) for part, mine in zip(parts, np.split(kept, bounds), strict=True) if mine.any()]


def _merged(parts: list[Part]) -> list[Part]:
    """One part for each list of values."""
    alike: dict[int, list[Part]] = defaultdict(list)
    for part in parts:
        alike[id(part.plain)].append(part)
    return [
        replace(some[0], rows=np.concatenate([p.rows for p in some]), values=np.concatenate([p.values for p in some]))
        for some in alike.values()
    ]


def _texts(parts: list[Part], used: list[list[int]]) -> tuple[I64, Sequence[str]]:
    """All values as texts: their numbers, and the texts."""
    known = Strings()
    found = []
    for part, few in zip(parts, used, strict=True):
        if part.plain is None:
            numbers, at = np.unique(part.values, return_inverse=True)
            found.append(np.array([known.add(str(one)) for one in numbers.tolist()], np.int64)[at])
        else:
            codes = np.zeros(len(part.plain), np.int64)
            codes[few] = [known.add(str(part.plain[i])) for i in few]
            found.append(codes[part.values])
    return np.concatenate(found), known.all()


def _numeric(part: Part, used: list[int], *, fractions: bool) -> I64 | F64:
    if part.plain is None:
        return part.values.astype(np.float64) if fractions else part.values.astype(np.int64, copy=False)
    plain = [0 if value is None or isinstance(value, str) else value for value in part.plain]
    kept = set(used)
    if fractions:
        floats: F64 = np.array([value if i in kept else 0 for i, value in enumerate(plain)], np.float64)
        return floats[part.values]
    ints: I64 = np.array([wrapped(int(value)) if i in kept else 0 for i, value in enumerate(plain)], np.int64)
    return ints[part.values]


def dense(
    parts: Sequence[Part], rows: int, said: Callable[[PlainStat], str | None]
) -> tuple[I32, Sequence[str | None]]:
    """What a stat says of each of ``rows`` events: index into the texts, 0 for none."""
    found = np.zeros(rows, np.int32)
    known: dict[str | None, int] = {None: 0}
    for part in map(Part.without_null, parts):
        if part.plain is None:
            few, places = np.unique(part.values, return_inverse=True)
            plain: Sequence[PlainStat | None] = few.tolist()
        else:
            plain, places = part.plain, part.values.astype(np.int64)
        codes = [0 if one is None else known.setdefault(said(one), len(known)) for one in plain]
        found[part.rows] = np.array(codes, np.int32)[places]
    return found, tuple(known)
