"""Time intervals as two sorted int64 arrays, and their painting by priority.

An interval set is (starts, ends), half open, in nanoseconds. ``merge`` makes it disjoint and sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.records import F64, I64

    Intervals = tuple[I64, I64]


def empty() -> Intervals:
    """No interval."""
    none = np.empty(0, np.int64)
    return none, none


def merge(starts: I64, ends: I64) -> Intervals:
    """The union as disjoint, sorted, non-touching intervals. Empty and negative ones drop out. Cost: O(n log n)."""
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if len(starts) == 0:
        return empty()
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    first = np.empty(len(starts), bool)
    first[0] = True
    first[1:] = starts[1:] > reach[:-1]
    index = np.flatnonzero(first)
    last = np.append(index[1:], len(starts)) - 1
    return starts[index], reach[last]


def union(one: Intervals, other: Intervals) -> Intervals:
    """What lies in either of two sets."""
    return merge(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def total(intervals: Intervals) -> int:
    """Summed length in ns of a disjoint set."""
    return int((intervals[1] - intervals[0]).sum())


def clip(intervals: Intervals, windows: Intervals) -> Intervals:
    """The parts of ``intervals`` that lie in ``windows``; both disjoint and sorted, so is the result."""
    a, b = intervals
    lo, hi = windows
    if len(a) == 0 or len(lo) == 0:
        return empty()
    first = np.searchsorted(hi, a, side="right")
    last = np.searchsorted(lo, b, side="left")
    counts = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(a)), counts)
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    window = np.repeat(first, counts) + offset
    starts = np.maximum(a[which], lo[window])
    ends = np.minimum(b[which], hi[window])
    keep = ends > starts
    return starts[keep], ends[keep]


def clipped_sum(starts: I64, ends: I64, windows: Intervals) -> I64:
    """For each (possibly overlapping) interval, its length within the disjoint sorted ``windows``. int64[interval]."""
    lo, hi = windows
    if len(lo) == 0:
        return np.zeros(len(starts), np.int64)
    before = np.concatenate(([0], np.cumsum(hi - lo)))

    def covered(t: I64) -> I64:
        """Length of the windows that lies before each t."""
        k = np.searchsorted(lo, t, side="right")
        inside = np.where(k > 0, np.minimum(t, hi[np.maximum(k - 1, 0)]) - lo[np.maximum(k - 1, 0)], 0)
        result: I64 = before[np.maximum(k - 1, 0)] + np.maximum(inside, 0)
        return result

    return covered(np.maximum(ends, starts)) - covered(starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Painting:
    """Time cut into pieces, each with the layer that shows. Pieces are sorted and cover the cells' range."""

    edges: I64
    """int64[piece + 1]"""
    layer: I64
    """int64[piece]: index of the topmost layer, ``background`` where none, -1 outside of every cell."""
    cell: I64
    """int64[piece]: the cell that the piece lies in, -1 for none."""
    sums: F64
    """float64[cell, layer + 1]: nanoseconds; the last column is the background. Rows add up to the cells' lengths."""
    background: int

    def layer_at(self, times: I64) -> I64:
        """The layer that shows at each time; -1 outside. int64[time]."""
        piece = np.searchsorted(self.edges, times, side="right") - 1
        good = (piece >= 0) & (piece < len(self.layer))
        result = np.full(len(times), -1, np.int64)
        result[good] = self.layer[piece[good]]
        return result


def paint(layers: Sequence[Intervals], cells: Intervals) -> Painting:
    """Give every moment of every cell to the first of ``layers`` that covers it, else to the background.

    Args:
        layers: interval sets, topmost first; members may overlap.
        cells: disjoint, sorted intervals (steps); moments outside of all cells are not painted.

    Cost: O(L n log n) for n interval ends and L layers.
    """
    lo, hi = cells
    edges = np.sort(np.concatenate([lo, hi, *(part for layer in layers for part in layer)]), kind="stable")
    edges = edges[np.append(True, np.diff(edges) > 0)] if len(edges) else edges
    if len(lo):
        edges = edges[(edges >= lo[0]) & (edges <= hi[-1])]
    pieces = max(0, len(edges) - 1)
    background = len(layers)
    shown = np.full(pieces, background, np.int64)
    for index in range(background - 1, -1, -1):
        starts, ends = layers[index]
        if not len(starts):
            continue
        begin = np.clip(np.searchsorted(edges, starts), 0, pieces)
        stop = np.clip(np.searchsorted(edges, ends), 0, pieces)
        depth = np.bincount(begin, minlength=pieces + 1) - np.bincount(stop, minlength=pieces + 1)
        shown[np.cumsum(depth)[:pieces] > 0] = index
    cell = np.searchsorted(lo, edges[:-1], side="right") - 1
    inside = (cell >= 0) & (edges[:-1] < hi[np.maximum(cell, 0)]) if len(lo) else np.zeros(pieces, bool)
    cell = np.where(inside, cell, -1)
    lengths = np.diff(edges)
    width = background + 1
    key = cell[inside] * width + shown[inside]
    counts = np.bincount(key, weights=lengths[inside].astype(np.float64), minlength=len(lo) * width)
    sums: F64 = counts.reshape(len(lo), width).astype(np.float64)
    shown[~inside] = -1
    return Painting(edges=edges, layer=shown, cell=cell, sums=sums, background=background)
