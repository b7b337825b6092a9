"""Time intervals as two sorted int64 arrays, and their painting by priority.

An interval set is (starts, ends), half open, in nanoseconds. ``merge`` makes it disjoint and sorted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.optrace import I8
    from stepscope.tables.records import F64, I64, Bool

    Intervals = tuple[I64, I64]


def empty() -> Intervals:
    """No interval."""
    none = np.empty(0, np.int64)
    return none, none


def merge(starts: I64, ends: I64) -> Intervals:
    """The union as disjoint, sorted, non-touching intervals. Empty and negative intervals are dropped. Cost: O(n log
    n).
    """
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if len(starts) == 0:
        return empty()
    if (starts[1:] > ends[:-1]).all():
        return starts, ends
    return merge_in_place(starts.copy(), ends.copy())


def merge_in_place(starts: I64, ends: I64) -> Intervals:
    """``merge`` for non-empty intervals; sorts the arrays in place."""
    if len(starts) == 0:
        return empty()
    # everything that began before a gap has ended before it, so the two arrays may be sorted apart
    starts.sort(kind="stable")  # mostly sorted runs
    ends.sort(kind="stable")
    first = np.empty(len(starts), np.bool_)
    first[0] = True
    np.greater(starts[1:], ends[:-1], out=first[1:])
    last = np.append(first[1:], True)
    return starts[first], ends[last]


def union(one: Intervals, other: Intervals) -> Intervals:
    """Union of two sets."""
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


def without(intervals: Intervals, others: Intervals) -> Intervals:
    """The parts of ``intervals`` that lie in none of ``others``; all disjoint and sorted, so is the result."""
    if len(intervals[0]) == 0 or len(others[0]) == 0:
        return intervals
    gaps = np.append(np.iinfo(np.int64).min, others[1]), np.append(others[0], np.iinfo(np.int64).max)
    return clip(intervals, gaps)


def overlapping(intervals: Intervals, starts: I64, ends: I64) -> Bool:
    """Whether [start, end) and a set of disjoint, sorted intervals have a moment in common. bool[start]."""
    begun = np.searchsorted(intervals[0], ends, side="left")
    over = np.searchsorted(intervals[1], starts, side="right")
    found: Bool = begun > over
    return found


def clipped_sum(starts: I64, ends: I64, windows: Intervals) -> I64:
    """Length of each (possibly overlapping) interval within the disjoint sorted ``windows``. int64[interval]."""
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


class Painting(Struct, frozen=True, kw_only=True):
    """Time cut into pieces, each with its topmost layer. Pieces are sorted and cover the range of the cells."""

    edges: I64
    """int64[piece + 1]"""
    layer: I8
    """int8[piece]: index of the topmost layer, ``background`` where none, -1 outside of every cell."""
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


MAX_LAYERS = 62
"""Bits of one word, without the one for the cell."""
_CHUNK_EDGES = 1 << 15
"""Edges painted at a time, so that the sort stays in the processor's cache."""
_EXPONENT_AT, _EXPONENT_OF_ONE = 52, 1023
"""Layout of a double: for a power of two, the exponent is the position of the bit."""
_CODE_BITS = 7
"""Bits for a layer's number, doubled, and whether it begins or ends."""


def paint(layers: Sequence[Intervals], cells: Intervals) -> Painting:
    """Give every moment of every cell to the first of ``layers`` that covers it, else to the background.

    Args:
        layers: interval sets, topmost first, ``MAX_LAYERS`` at most; members may overlap.
        cells: disjoint, sorted intervals (steps); moments outside of all cells are not painted.

    Raises:
        ValueError: there are too many layers.

    Cost: O(n log n) for n interval ends.
    """
    if len(layers) > MAX_LAYERS:
        raise ValueError(f"{len(layers)} layers, {MAX_LAYERS} at most")
    lo, hi = cells
    background = len(layers)
    disjoint = [merge(*layer) for layer in layers]
    chunks = min(len(lo), 1 + 2 * sum(len(starts) for starts, _ in disjoint) // _CHUNK_EDGES)
    bounds = np.linspace(0, len(lo), chunks + 1).astype(np.int64).tolist()
    follows = np.append(lo, hi[-1:])
    room = 2 * (len(lo) + sum(len(starts) for starts, _ in disjoint) + chunks * (len(layers) + 1))
    edges, layer, size = np.empty(room + 1, np.int64), np.empty(room, np.int8), 0  # unused layers cost nothing
    sums = [np.empty((0, background + 1))]
    for first, last in pairwise(bounds):
        part = _paint(disjoint, (lo[first:last], hi[first:last]), int(follows[last]))
        edges[size : size + len(part.edges)], layer[size : size + len(part.layer)] = part.edges, part.layer
        size += len(part.layer)
        sums.append(part.sums)
    edges[size : size + len(hi[-1:])] = hi[-1:]
    edges.resize(size + len(hi[-1:]), refcheck=False)
    layer.resize(size, refcheck=False)
    return Painting(edges=edges, layer=layer, sums=np.concatenate(sums), background=background)


def _paint(layers: Sequence[Intervals], cells: Intervals, until: int) -> Painting:
    """Paint some cells and what follows them, without the last edge. Layers are disjoint and sorted.

    Edges of all layers are visited in order of time, with one bit for each open layer and one above them for the cell:
    the lowest set bit is the visible layer.
    """
    lo = cells[0]
    background = len(layers)
    origin = int(lo[0])
    keys, steps = [], np.zeros(2 * background + 2, np.int64)
    for index, (starts, ends) in enumerate((*layers, cells)):
        first, last = np.searchsorted(ends, origin, side="right"), np.searchsorted(starts, until, side="left")
        if first < last:
            begin, end = starts[first:last] - origin, ends[first:last] - origin
            begin[0], end[-1] = max(0, begin[0]), min(end[-1], until - origin)
            keys += [begin << _CODE_BITS | 2 * index, end << _CODE_BITS | 2 * index + 1]
            steps[2 * index : 2 * index + 2] = 1 << index, -(1 << index)
    key = np.sort(np.concatenate(keys), kind="stable")  # sorted runs, two of each layer
    open_ = np.cumsum(steps[key & (1 << _CODE_BITS) - 1])
    times = key >> _CODE_BITS
    settled = np.flatnonzero(np.diff(times, append=until - origin) > 0)  # the last of the edges at one moment
    times, open_ = times[settled], open_[settled]
    lowest = (open_ & -open_).astype(np.float64)
    layer = (lowest.view(np.int64) >> _EXPONENT_AT) - _EXPONENT_OF_ONE
    layer[open_ < 1 << background] = -1
    first_of = np.searchsorted(times, lo - origin)
    in_cell = np.repeat(np.arange(len(lo)), np.diff(first_of, append=len(times)))
    width = background + 2
    lengths = np.diff(times, append=until - origin).astype(np.float64)
    sums = np.bincount(in_cell * width + layer + 1, weights=lengths, minlength=len(lo) * width).astype(np.float64)
    shown = np.diff(layer, prepend=-2) != 0
    shown[first_of] = True
    return Painting(
        edges=times[shown] + origin,
        layer=layer[shown].astype(np.int8),
        sums=sums.reshape(-1, width)[:, 1:],
        background=background,
    )
