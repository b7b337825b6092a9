"""Tiles of a timeline: marks of a group of lanes in a part of the time, ready for the page to draw.

Lanes of a tile with marks in the same columns are reduced together: a tile has 32 lanes of some hundred marks each, for
which a numpy call costs as much as its work.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct, field

from stepscope.store.span_cache import WHOLE
from stepscope.tables.errors import UsageError
from stepscope.timeline import levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.store.span_cache import Column, Columns, MappedCache
    from stepscope.tables.records import I64

TILE_LOG2 = 10
"""Buckets of a tile: 1024."""
MAX_EXPONENT = 46
"""Largest bucket exponent: such a tile spans two years."""
MAGIC = 0x4C545353
LAST_NS = 1 << 60
UNITS_LOG2 = 4
"""Times in a tile are counted in sixteenths of its bucket."""
MOST_AT_ONCE = 100_000
"""Most rows of a tile that is served directly, because handing it to a thread would take as long."""
MANY = 15_000
"""Rows that are reduced together. Columns above 128 KiB are freshly mapped by the system each time."""
_HEAD = struct.Struct("<IIIIqq")
_COLUMNS = 5
_NAME = 0xFFFFFF
_FILL_AT = 24
_MOST = 0xFFFFFFFF
U32 = np.typing.NDArray[np.uint32]


class _Rows(NamedTuple):
    """Marks of a lane in a tile: rows of columns, and the offset of the lane in them."""

    lane: int
    first: int
    last: int


class _Batch(Struct):
    """Lanes whose marks share columns."""

    level: int
    columns: Columns
    rows: list[_Rows] = field(default_factory=list)
    size: int = 0


class _Place(NamedTuple):
    """The time range of a tile."""

    begin: int
    end: int
    exponent: int

    @property
    def unit(self) -> int:
        """Exponent of the time unit."""
        return max(0, self.exponent - UNITS_LOG2)


class Tile(Struct, frozen=True):
    """Input of a tile."""

    place: _Place
    lanes: range
    batches: list[_Batch]
    where: list[tuple[int, int]]
    """For each lane: its batch, and its index in the batch."""

    @property
    def rows(self) -> int:
        """Number of rows to read, which determines the cost."""
        return sum(batch.size for batch in self.batches)

    def encoded(self) -> bytes:
        """The tile, little-endian (docs/rest.md). Cost: about 50 ns per row."""
        made = [_packed(batch, self.place) for batch in self.batches]
        parts = [made[batch][0][:, made[batch][1][at] : made[batch][1][at + 1]] for batch, at in self.where]
        table = np.array([(lane, part.shape[1]) for lane, part in zip(self.lanes, parts, strict=True)], "<u4")
        columns = np.concatenate(parts, axis=1)
        place = self.place
        head = _HEAD.pack(MAGIC, len(parts), columns.shape[1], place.unit, place.begin, 1 << place.exponent)
        return b"".join((head, table.tobytes(), columns.tobytes()))


def find(reader: MappedCache, exponent: int, index: int, group: int) -> Tile:
    """Describe the marks of a group of lanes in one tile, without reading them.

    Raises:
        UsageError: there is no such group, or it lies after the last possible time.
    """
    size = reader.index.timeline.lanes_per_tile
    lanes = range(group * size, min((group + 1) * size, reader.lanes))
    if not lanes:
        raise UsageError(f"lane group {group}: there are {-(-reader.lanes // size)}")
    begin = index << (exponent + TILE_LOG2)
    if begin > LAST_NS:
        raise UsageError(f"tile {index}: it starts after {LAST_NS} ns")
    place = _Place(begin, begin + (1 << (exponent + TILE_LOG2)), exponent)
    batches: list[_Batch] = []
    open_: dict[int, int] = {}
    where = []
    for lane in lanes:
        level, first, last = reader.stored(lane, exponent)
        rows = _seen(reader.columns(level), first, last, place)
        at = open_.get(level)
        if at is None or batches[at].size + rows.last - rows.first > MANY:
            at = open_[level] = len(batches)
            batches.append(_Batch(level, reader.columns(level)))
        batch = batches[at]
        where.append((at, len(batch.rows)))
        batch.rows.append(rows)
        batch.size += rows.last - rows.first
    return Tile(place, lanes, batches, where)


def _seen(columns: Columns, first: int, last: int, place: _Place) -> _Rows:
    """Rows of a lane that start in a tile, and the preceding one if it reaches into it."""
    low, high = columns["start"][first:last].searchsorted(place[:2]).tolist()
    if low and int(columns["end"][first + low - 1]) > place.begin:
        low -= 1
    return _Rows(first, first + low, first + high)


def _packed(batch: _Batch, place: _Place) -> tuple[U32, I64]:
    """The columns of a tile for some lanes, and the offset of each lane.

    Shapes: uint32[column, mark], int64[lane + 1].
    """
    level, columns, rows = batch.level, batch.columns, batch.rows
    edges = np.cumsum([0, *(part.last - part.first for part in rows)])
    start, end, name = (_joined(columns[column], rows) for column in ("start", "end", "name"))
    count: I64 | int
    if level == WHOLE:
        count, busy = 1, end - start
        longest = busy
        row = np.arange(edges[-1]) + np.repeat([part.first - part.lane for part in rows] - edges[:-1], np.diff(edges))
    else:
        count, busy, longest, row = (_joined(columns[column], rows) for column in ("count", "busy", "longest", "row"))
    by = None if level == place.exponent else levels.groups(start, end, longest, 1 << place.exponent, edges)
    if by is not None:
        first, last, best = by
        count = last - first + 1 if level == WHOLE else np.add.reduceat(count, first)
        start, end, name, row, busy = start[first], end[last], name[best], row[best], np.add.reduceat(busy, first)
        edges = np.searchsorted(first, edges)
    made = np.empty((_COLUMNS, len(start)), "<u4")
    made[0] = begin = np.clip((start - place.begin) >> place.unit, -(1 << 31), (1 << 31) - 1)
    stop = (end - (place.begin - (1 << place.unit) + 1)) >> place.unit
    made[1] = np.clip(stop - begin, 0, _MOST)
    fill = np.clip(busy * 255 // np.maximum(1, end - start), 1, 255)
    made[2] = name & _NAME | np.where(np.equal(count, 1), 255, fill) << _FILL_AT
    made[3] = np.minimum(count, _MOST)
    made[4] = row
    return made, edges


def _joined(column: Column, rows: Sequence[_Rows]) -> I64:
    return np.concatenate([column[part.first : part.last] for part in rows], dtype=np.int64)
