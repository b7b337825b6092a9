"""Which event lies in which: parents and self times of the nested spans of a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepscope.model.records import I64


def parents(start_ns: I64, dur_ns: I64) -> I64:
    """The event that most closely encloses each one: int64[event], -1 for none.

    Shapes: both [event], the events of one line or some of them, by start, the longer first. An event without duration
    encloses nothing; of two equal spans the first is the parent. Where spans overlap without nesting, the parent is the
    one that began last among those still open.

    Cost: one sort, and one pass for each level of nesting.
    """
    result = np.full(len(start_ns), -1, np.int64)
    rows = np.flatnonzero(dur_ns > 0)
    start = start_ns[rows]
    depth = np.arange(len(rows)) - np.searchsorted(np.sort(start + dur_ns[rows]), start, "right")
    if not depth.any():
        return result
    by_depth = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max()) + 2))
    for level in range(1, len(bounds) - 1):
        outer = by_depth[bounds[level - 1] : bounds[level]]
        inner = by_depth[bounds[level] : bounds[level + 1]]
        result[rows[inner]] = rows[outer[np.searchsorted(outer, inner) - 1]]
    return result


def self_times(dur: I64, parent: I64) -> I64:
    """Durations without those of direct children: int64[event], in the unit of ``dur``; never negative."""
    nested = np.flatnonzero(parent >= 0)
    taken = np.bincount(parent[nested], weights=dur[nested], minlength=len(dur))
    return np.maximum(0, dur - np.rint(taken).astype(np.int64))
