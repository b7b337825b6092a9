"""Lanes without overlaps, and marks that stand for several spans without losing any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.timeline import levels
from stepscope.timeline.levels import Marks

MS = 1_000_000


def lane(*spans: tuple[int, int, int]) -> Marks:
    """Marks of (start, end, name)."""
    start, end, name = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    return levels.single(start, end, name.astype(np.int32))


def test_short_neighbours_become_one_mark_that_counts_them() -> None:
    """Those of one bucket; the longest names the mark; a span of a bucket stays itself."""
    found = levels.merged(lane((0, 2, 1), (3, 9, 2), (10, 40, 3), (41, 42, 4), (50, 51, 5)), 20)
    assert found.start.tolist() == [0, 10, 41]
    assert found.end.tolist() == [9, 40, 51]
    assert found.name.tolist() == [2, 3, 4]
    assert found.count.tolist() == [2, 1, 2]
    assert found.busy.tolist() == [8, 30, 2]
    assert found.row.tolist() == [1, 2, 3]


gaps = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 3)), min_size=1, max_size=80)


@given(gaps, st.integers(0, 6), st.integers(0, 6))
def test_merging_twice_says_what_merging_once_says(parts: list[tuple[int, int, int]], fine: int, more: int) -> None:
    """At twice the bucket and more; and nothing is lost at any."""
    spans, at = [], 0
    for gap, dur, name in parts:
        spans.append((at + gap, at + gap + dur, name))
        at += gap + dur
    base = lane(*spans)
    coarse = fine + 1 + more
    once = levels.merged(base, 1 << coarse)
    twice = levels.merged(levels.merged(base, 1 << fine), 1 << coarse)
    for found in (once, twice):
        assert int(found.count.sum()) == len(spans)
        assert int(found.busy.sum()) == sum(end - start for start, end, _ in spans)
        assert (found.start[1:] >= found.end[:-1]).all()
    for column in ("start", "end", "name", "count", "busy", "longest", "row"):
        assert getattr(once, column).tolist() == getattr(twice, column).tolist()


@given(st.lists(gaps, min_size=1, max_size=5), st.integers(0, 8))
def test_lanes_side_by_side_are_merged_as_each_alone(parts: list[list[tuple[int, int, int]]], exponent: int) -> None:
    """Nothing of two lanes becomes one, also where one ends in the bucket that the next one begins in."""
    lanes = []
    for part in parts:
        spans, at = [], 0
        for gap, dur, which in part:
            spans.append((at + gap, at + gap + dur, which))
            at += gap + dur
        lanes.append(lane(*spans))
    columns = [np.concatenate(column) for column in zip(*(one.columns().values() for one in lanes), strict=True)]
    every = Marks(*columns)
    begins = np.cumsum([0, *(len(one) for one in lanes)])
    found = levels.groups(every.start, every.end, every.longest, 1 << exponent, begins)
    together = every if found is None else levels.taken(every, found)
    alone = [levels.merged(one, 1 << exponent) for one in lanes]
    for name, column in together.columns().items():
        assert column.tolist() == np.concatenate([getattr(one, name) for one in alone]).tolist()


def test_levels_are_stored_where_they_save_something() -> None:
    """Each at most a quarter of the spans, with all of them; none for a short lane."""
    start = np.arange(20_000, dtype=np.int64) * 10_000
    base = levels.single(start, start + 4_000, np.zeros(len(start), np.int32))
    found = list(levels.levels(base))
    assert [exponent for exponent, _ in found] == list(range(found[0][0], found[-1][0] + 1, levels.LEVEL_STEP))
    for _, marks in found:
        assert len(marks) * levels.KEPT_RATIO <= len(base)
        assert int(marks.count.sum()) == len(base)
    assert list(levels.levels(lane((0, 1, 0), (2, 1 << 30, 0)))) == []


def test_nested_spans_stand_below_what_holds_them() -> None:
    """By depth, moments too."""
    start = np.array([0, 10, 12, 15, 30, 60], np.int64)
    dur = np.array([50, 20, 3, 0, 10, 5], np.int64)
    lanes, deeper = levels.by_depth(start, dur)
    assert [rows.tolist() for rows in lanes] == [[0, 5], [1, 4], [2, 3]]
    assert deeper == 0


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), max_size=60))
def test_no_lane_holds_two_spans_at_once(spans: list[tuple[int, int]]) -> None:
    """However they overlap; and every span is in one lane."""
    spans.sort(key=lambda span: (span[0], -span[1]))
    start = np.array([s for s, _ in spans], np.int64)
    dur = np.array([d for _, d in spans], np.int64)
    lanes, deeper = levels.by_depth(start, dur)
    for rows in lanes:
        assert (start[rows][1:] >= (start + dur)[rows][:-1]).all()
    assert sorted(row for rows in lanes for row in rows.tolist()) == list(range(len(spans)))
    assert deeper == 0


def test_what_is_too_deep_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no lane is made for it."""
    monkeypatch.setattr(levels, "MAX_LANES", 3)
    start = np.arange(10, dtype=np.int64)
    lanes, deeper = levels.by_depth(start, 100 - start)
    assert len(lanes) == 3
    assert deeper == 7
    lanes, deeper = levels.by_depth(start, np.full(10, 100, np.int64))  # overlapping, not nested
    assert len(lanes) == 3
    assert deeper == 7
