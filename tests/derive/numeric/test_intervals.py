"""Intervals against a reference that looks at every moment of a small grid."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.derive.numeric import intervals

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals

GRID = 40
_ANY = st.lists(st.tuples(st.integers(0, GRID), st.integers(0, GRID)), max_size=12)
"""Intervals of any kind: empty and negative ones, overlapping, unsorted."""


def arrays(pairs: list[tuple[int, int]]) -> Intervals:
    """Pairs as two columns."""
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def disjoint(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted intervals that do not overlap, some of them touching, from any numbers."""
    edges = sorted({n for pair in pairs for n in pair})
    return list(zip(edges[::2], edges[1::2], strict=False))


_DISJOINT = _ANY.map(disjoint)


def moments(pairs: list[tuple[int, int]]) -> set[int]:
    """The grid's moments that the intervals cover."""
    return {t for a, b in pairs for t in range(a, b)}


def pairs_of(found: Intervals) -> list[tuple[int, int]]:
    """Two columns as pairs."""
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


@given(pairs=_ANY)
def test_merge_is_the_union(pairs: list[tuple[int, int]]) -> None:
    """Merging covers the same moments by sorted intervals that neither overlap nor touch."""
    merged = pairs_of(intervals.merge(*arrays(pairs)))
    assert moments(merged) == moments(pairs)
    assert all(a < b for a, b in merged)
    assert all(left[1] < right[0] for left, right in pairwise(merged))
    assert intervals.total(arrays(merged)) == len(moments(pairs))


@given(a=_ANY, b=_ANY)
def test_merge_is_associative(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    """Merging in parts gives what merging at once gives."""
    parts = pairs_of(intervals.merge(*arrays(a))) + pairs_of(intervals.merge(*arrays(b)))
    assert pairs_of(intervals.merge(*arrays(parts))) == pairs_of(intervals.merge(*arrays(a + b)))


@given(pairs=_DISJOINT, windows=_DISJOINT)
def test_clip_is_the_intersection(pairs: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    """Clipping covers the moments that both cover, in order, without overlap."""
    clipped = pairs_of(intervals.clip(arrays(pairs), arrays(windows)))
    assert moments(clipped) == moments(pairs) & moments(windows)
    assert sum(b - a for a, b in clipped) == len(moments(clipped))
    assert clipped == sorted(clipped)


@given(pairs=_ANY, windows=_DISJOINT)
def test_clipped_sum_is_the_length_inside(pairs: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    """Each interval's length within the windows is counted for itself, overlaps or not."""
    sums = intervals.clipped_sum(*arrays(pairs), arrays(windows))
    assert sums.tolist() == [len(moments([pair]) & moments(windows)) for pair in pairs]


@given(layers=st.lists(_ANY, max_size=4), cells=_DISJOINT)
def test_painting_shows_the_topmost_layer(layers: list[list[tuple[int, int]]], cells: list[tuple[int, int]]) -> None:
    """Every moment of a cell belongs to the first layer that covers it, else to the background."""
    layers = [[(min(p), max(p)) for p in layer] for layer in layers]
    painting = intervals.paint([arrays(layer) for layer in layers], arrays(cells))
    covers = [moments(layer) for layer in layers]
    expected = np.zeros((len(cells), len(layers) + 1))
    shown = []
    for t in range(GRID):
        cell = next((i for i, (a, b) in enumerate(cells) if a <= t < b), -1)
        top = next((i for i, cover in enumerate(covers) if t in cover), len(layers)) if cell >= 0 else -1
        shown.append(top)
        if cell >= 0:
            expected[cell, top] += 1
    assert painting.sums.tolist() == expected.tolist()
    assert painting.layer_at(np.arange(GRID)).tolist() == shown
    assert painting.sums.sum(axis=1).tolist() == [b - a for a, b in cells]


def test_nothing_is_painted_without_cells() -> None:
    """No cells, no pieces; no moment lies in one."""
    painting = intervals.paint([arrays([(0, 10)])], intervals.empty())
    assert painting.sums.shape == (0, 2)
    assert painting.layer_at(np.array([0, 5])).tolist() == [-1, -1]


def test_without_is_what_is_left_of_the_union() -> None:
    """What lies in others is cut out, at edges and inside; nothing is cut by nothing."""
    one = np.array([0, 20]), np.array([10, 40])
    others = np.array([-5, 5, 25, 40]), np.array([2, 7, 30, 50])
    assert [a.tolist() for a in intervals.without(one, others)] == [[2, 7, 20, 30], [5, 10, 25, 40]]
    assert intervals.without(one, intervals.empty()) is one
