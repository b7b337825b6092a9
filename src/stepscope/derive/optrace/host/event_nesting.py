"""Nesting of the events of a line: parents and self times."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.tables.blocks import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.tables.optrace import I8, I32
    from stepscope.tables.records import I64, Bool

_CHUNK = 1 << 15
"""Events processed at a time, so that their columns stay in the processor's cache."""

_FEW_LEVELS = 50
"""Up to this many levels are searched one by one; more are sorted."""


def parents(start_ns: I64, dur_ns: I64) -> I64:
    """The event that most closely encloses each one: int64[event], -1 for none.

    Shapes: both [event], some or all events of one line, sorted by start, longer ones first. An event without duration
    encloses nothing; of two equal spans the first is the parent. If spans overlap without nesting, the parent is the
    one that began last among those still open.

    Cost: one sort, and one pass for each level of nesting.
    """
    return nest(start_ns, dur_ns)[0]


def nest(start_ns: I64, dur_ns: I64) -> tuple[I64, I32]:
    """Parents, as in ``parents``, and the number of events around each one: int32[event]."""
    parent = np.full(len(start_ns), -1, np.int64)
    depth = np.zeros(len(start_ns), np.int32)
    rows = np.flatnonzero(dur_ns > 0)
    start = start_ns[rows]
    end = start + dur_ns[rows]
    for part in apart(start, end):
        level = _depth(start[part], end[part])
        if level.any():
            mine = rows[part]
            inner, outer = _enclosed(level)
            parent[mine[inner]] = mine[outer]
            depth[mine] = level
    return parent, depth


def _depth(start: I64, end: I64) -> I64:
    """Number of open spans when each one begins; all have a duration."""
    holds = np.flatnonzero(end[:-1] > start[1:])  # spans without overlap have none open when another begins
    change = -np.bincount(np.searchsorted(start, end[holds]), minlength=len(start) + 1)
    change[holds + 1] += 1
    return np.cumsum(change[:-1])


def _enclosed(depth: I64) -> tuple[I64, I64]:
    """The nested spans, and the parent of each: the last span before it that is less deep.

    Depth rises by one at a time: a span deeper than the one before it lies in that one; any other lies where the
    previous span of its depth does.
    """
    order = _by_depth(depth)
    inner = order[np.searchsorted(depth[order], 1) :]
    follows = depth[inner] > depth[inner - 1]
    outer = inner[np.maximum.accumulate(np.where(follows, np.arange(len(inner)), 0))] - 1
    return inner, outer


def levels(depth: I32) -> Sequence[I32]:
    """The events of each depth from 1 on, rising."""
    deepest = int(depth.max(initial=0))
    if deepest < _FEW_LEVELS:
        small = depth.astype(np.int8)
        return [np.flatnonzero(small == level).astype(np.int32) for level in range(1, deepest + 1)]
    nested = np.flatnonzero(depth).astype(np.int32)
    order = nested[_by_depth(depth[nested])]
    bounds = np.cumsum(np.bincount(depth[nested])).tolist()
    return [order[first:last] for first, last in pairwise(bounds)]


def _by_depth(depth: I64 | I32) -> I64:
    small = depth.astype(np.min_scalar_type(int(depth.max(initial=0))))  # small numbers are sorted by counting
    return np.argsort(small, kind="stable")


def apart(start: I64, end: I64) -> Iterator[slice]:
    """Slices of spans sorted by start, such that all earlier spans have ended when the first of a slice begins."""
    first, size = 0, _CHUNK
    while first < len(start):
        last = first + size
        cut = len(start)
        if last < len(start):
            free = start[first + 1 : last + 1] >= np.maximum.accumulate(end[first:last])
            cut = last - int(free[::-1].argmax())
            if not free[cut - first - 1]:
                size *= 2
                continue
        yield slice(first, cut)
        first, size = cut, _CHUNK


class Nesting(Struct, frozen=True, kw_only=True):
    """Parents of the events of a trace."""

    parent: I32
    """The enclosing event, -1 for none: int32[event]."""
    levels: Sequence[I32]
    """Events that have a parent, by depth, the outer ones first."""

    def spread(self, flag: Bool) -> Bool:
        """The flagged events and those inside a flagged one."""
        result: Bool = flag.copy()
        for level in self.levels:
            for rows in _in_blocks(level):
                result[rows] |= result[self.parent[rows]]
        return result

    def inherit(self, values: I64 | I8) -> None:
        """Give each event whose value is 0 that of the nearest enclosing event that has one."""
        for level in self.levels:
            for rows in _in_blocks(level):
                without = rows[values[rows] == 0]
                values[without] = values[self.parent[without]]


def _in_blocks(rows: I32) -> Iterator[I32]:
    return (rows[block] for block in blocks(len(rows)))


def self_times(dur: I64, parent: I64) -> I64:
    """Durations without those of direct children: int64[event], in the unit of ``dur``; never negative."""
    nested = np.flatnonzero(parent >= 0)
    taken = np.bincount(parent[nested], weights=dur[nested], minlength=len(dur))
    return np.maximum(0, dur - np.rint(taken).astype(np.int64))
