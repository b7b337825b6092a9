"""Spans at several levels of detail. Spans too close to be told apart on a screen become one mark that says how many it
stands for.

``by_depth`` assigns the spans of a track to lanes in which none overlaps another. ``merged`` reduces a lane to what is
visible with buckets of a given length: spans of at least one bucket stay as they are; shorter neighbours that begin in
the same bucket become one mark with their count, their busy time and the longest of them. Merging twice gives the same
result as merging once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.host import event_nesting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.optrace import I32
    from stepscope.tables.records import I64

MAX_LANES = 256
"""Lanes per track. Deeper spans are counted and left out."""
FIRST_LEVEL = 14
"""The finest stored bucket is 2**14 ns, 16 us."""
LEVEL_STEP = 2
"""Stored buckets grow fourfold; levels between them are computed on request."""
KEPT_RATIO = 4
"""A level is stored only if it has at most one row for this many spans."""
MIN_ROWS = 2_048
"""Lanes with fewer spans are reduced on request."""


class Marks(Struct, frozen=True):
    """Spans of a lane, or marks for several spans each. Shapes: [mark], sorted by start; none overlaps another."""

    start: I64
    end: I64
    name: I32
    """Name of the longest span."""
    count: I64
    busy: I64
    """Summed time of the spans."""
    longest: I64
    row: I64
    """Row of the longest span within the lane."""

    def __len__(self) -> int:
        """Number of marks."""
        return len(self.start)

    def columns(self) -> dict[str, I64 | I32]:
        """The columns by name."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


def single(start: I64, end: I64, name: I32, first_row: int = 0) -> Marks:
    """Marks that each stand for one span."""
    count = np.ones(len(start), np.int64)
    rows = np.arange(first_row, first_row + len(start), dtype=np.int64)
    return Marks(start, end, name, count, end - start, end - start, rows)


def merged(marks: Marks, bucket: int) -> Marks:
    """The marks of a level whose buckets last ``bucket`` nanoseconds."""
    if len(marks) <= 1:
        return marks
    found = groups(marks.start, marks.end, marks.longest, bucket)
    return marks if found is None else taken(marks, found)


class Groups(NamedTuple):
    """Neighbouring marks that become one. Shapes: [group], positions of marks."""

    first: I64
    last: I64
    longest: I64
    """Position of the longest mark; the first of equals."""


def groups(start: I64, end: I64, longest: I64, bucket: int, begins: I64 | None = None) -> Groups | None:
    """Which marks become one with buckets of ``bucket`` nanoseconds; None if none does.

    ``begins``: where lanes begin in the columns, if there are several. Marks of different lanes are never merged.
    """
    first = firsts(start, end, bucket, begins)
    if len(first) == len(start):
        return None
    last = np.append(first[1:], len(start)) - 1
    most = np.maximum.reduceat(longest, first)
    hits = np.flatnonzero(longest == np.repeat(most, last - first + 1))
    return Groups(first, last, hits if len(hits) == len(first) else hits[np.searchsorted(hits, first)])


def taken(marks: Marks, by: Groups) -> Marks:
    """One mark for each group."""
    return Marks(
        marks.start[by.first],
        marks.end[by.last],
        marks.name[by.longest],
        np.add.reduceat(marks.count, by.first),
        np.add.reduceat(marks.busy, by.first),
        marks.longest[by.longest],
        marks.row[by.longest],
    )


def firsts(start: I64, end: I64, bucket: int, begins: I64 | None = None) -> I64:
    """Positions at which a mark begins. ``begins``: where lanes begin."""
    key = start // bucket
    large = end - start >= bucket
    new = np.empty(len(start), np.bool_)
    new[:1] = True
    np.not_equal(key[1:], key[:-1], out=new[1:])
    new[1:] |= large[1:]
    new[1:] |= large[:-1]
    if begins is not None:
        new[begins[begins < len(new)]] = True
    return np.flatnonzero(new)


def levels(spans: Marks) -> Iterator[tuple[int, Marks]]:
    """(exponent of the bucket, marks) for the levels of a lane that are worth storing, finest first."""
    if len(spans) < MIN_ROWS:
        return
    whole = int(spans.end[-1] - spans.start[0])
    marks, exponent = spans, FIRST_LEVEL
    while 1 << exponent <= whole:
        if marks is spans and len(firsts(spans.start, spans.end, 1 << exponent)) * KEPT_RATIO > len(spans):
            exponent += LEVEL_STEP
            continue
        marks = merged(marks, 1 << exponent)
        yield exponent, marks
        exponent += LEVEL_STEP


def by_depth(start: I64, dur: I64) -> tuple[list[I64], int]:
    """Rows of each lane of a track, and the number of spans deeper than ``MAX_LANES``.

    Shapes: both [span], sorted by start, longer spans first. A nested span stands below its parent; a span that
    overlaps without nesting goes to the first free lane. Cost: one sort if all nest; else a loop over all spans.
    """
    if not len(start):
        return [], 0
    end = start + dur
    depth = _depth(start, end)
    lanes = _rows_of(depth)
    if any((start[rows[1:]] < end[rows[:-1]]).any() for rows in lanes):
        depth = _first_free(start, end)
        lanes = _rows_of(depth)
    return lanes[:MAX_LANES], sum(len(rows) for rows in lanes[MAX_LANES:])


def _depth(start: I64, end: I64) -> I64:
    """Nesting depth of each span."""
    depth = event_nesting.nest(start, end - start)[1].astype(np.int64)
    moments = np.flatnonzero(end == start)
    if len(moments):
        lasting = end > start
        at = start[moments]
        opened = np.searchsorted(start[lasting], at, "right")
        depth[moments] = opened - np.searchsorted(np.sort(end[lasting]), at, "right")
    return depth


def _rows_of(depth: I64) -> list[I64]:
    order = np.argsort(depth.astype(np.min_scalar_type(int(depth.max(initial=0)))), kind="stable")
    bounds = np.cumsum(np.bincount(depth))
    return [rows.astype(np.int64) for rows in np.split(order, bounds[:-1]) if len(rows)]


def _first_free(start: I64, end: I64) -> I64:
    """The first lane that is free when a span begins: int64[span]."""
    free: list[int] = []
    chosen = np.empty(len(start), np.int64)
    for i, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lane = next((at for at, until in enumerate(free) if until <= begin), len(free))
        if lane == len(free):
            if lane > MAX_LANES:
                chosen[i] = lane
                continue
            free.append(stop)
        else:
            free[lane] = stop
        chosen[i] = lane
    return chosen
