"""What was lost is counted and placed in time, whatever was lost and however the rest was stored."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import records

from stepscope.store import losses, open_session
from stepscope.store.segments import Segment
from stepscope.store.writer import SessionWriter
from stepscope.tables.records import Losses, RecordTable

WRITTEN = 300
LIVES = (0, 1_000_000)


def segments(*ranges: tuple[int, int]) -> list[Segment]:
    """Segments of records FIRST to LAST."""
    return [Segment(first=first, last=last, name=f"{first}-{last}") for first, last in ranges]


def covers(lost: Losses, ends: np.ndarray) -> bool:
    """Whether each of the times lies in one of the losses."""
    return all(((lost.start_ns <= end) & (end <= lost.end_ns)).any() for end in ends.tolist())


@given(st.sets(st.integers(0, WRITTEN - 1)), st.sets(st.integers(1, WRITTEN - 1), max_size=4))
def test_each_lost_record_is_counted_and_lies_in_a_loss(gone: set[int], cuts: set[int]) -> None:
    """Whichever records are missing: their number is right, and each ended within one of the losses."""
    whole = records(0, WRITTEN)
    kept = np.isin(np.arange(WRITTEN), list(gone), invert=True)
    edges = [0, *sorted(cuts), WRITTEN]
    lost = losses.build(whole.take(kept), segments(*((a, b - 1) for a, b in itertools.pairwise(edges))), LIVES)
    assert int(lost.records.sum()) == len(gone)
    assert covers(lost, (whole.start_ns + whole.dur_ns)[~kept])
    assert (lost.start_ns <= lost.end_ns).all()


def test_nothing_is_lost_where_all_is_there() -> None:
    """Neither in one segment nor in several, nor before the first that the quota has left."""
    whole = records(0, WRITTEN)
    assert len(losses.build(whole, segments((0, 99), (100, 299)), LIVES)) == 0
    assert len(losses.build(whole.take(slice(100, None)), segments((100, 299)), LIVES)) == 0
    assert len(losses.build(RecordTable.empty(), [], LIVES)) == 0


@pytest.mark.parametrize(
    ("first", "expected"), [(0, (299_500, 1_000_000)), (100, (0, 100_200))], ids=["the last", "the first"]
)
def test_what_only_the_collector_knows_of_is_placed_at_an_end(first: int, expected: tuple[int, int]) -> None:
    """Lost records that left no empty place were the last ones, or lie before what the quota has left."""
    kept = records(0, WRITTEN).take(slice(first, None))
    lost = losses.build(kept, segments((first, 299)), LIVES, known=7)
    assert (int(lost.start_ns[0]), int(lost.end_ns[0]), int(lost.records[0])) == (*expected, 7)


def test_a_process_all_of_whose_records_are_lost() -> None:
    """Without a segment the loss is as long as the process."""
    lost = losses.build(RecordTable.empty(), [], LIVES, known=7)
    assert (lost.start_ns.tolist(), lost.end_ns.tolist(), lost.records.tolist()) == ([0], [1_000_000], [7])


def test_a_stored_session_says_when(made: Path) -> None:
    """A hole that the collector left in the stream is a loss of the session that is read."""
    SessionWriter(made).write_records("7-70", records(150, 50).take(np.r_[0:10, 20:50]))
    (worker,) = open_session(made).workers
    assert worker.lost.records.tolist() == [10]
    assert (int(worker.lost.start_ns[0]), int(worker.lost.end_ns[0])) == (159_500, 170_200)
