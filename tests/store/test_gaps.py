"""Gaps of the duty cycle are split off where a session is read, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.store.gaps import read, split
from stepscope.tables.records import RecordTable
from stepscope.wire.kinds import SHAPE_SHIFT, Flag, Kind, Trait, kinds_with

BEGIN, END = 1_000, 3_000
HALF = (BEGIN + END) // 2
COUNTED = int(Kind.FUNCTION) << 8


def stored(*rows: tuple[int, int, Kind, int, int]) -> RecordTable:
    """Records (start, duration, kind, argument, flags), sorted as the reader sorts them."""
    table = np.array(sorted(rows, key=lambda row: (row[0], -row[1])), np.int64).reshape(-1, 5)
    columns = dict(zip(("start_ns", "dur_ns", "kind", "arg", "flags"), table.T, strict=True))
    zero = np.zeros(len(table), np.int64)
    return RecordTable(**columns, name=zero, thread=zero, seq=np.arange(len(table)))


def gap() -> list[tuple[int, int, Kind, int, int]]:
    """A gap of two parts, the first of which counted calls of two kinds."""
    return [
        (BEGIN, HALF - BEGIN, Kind.REST, 7, COUNTED),
        (BEGIN, HALF - BEGIN, Kind.REST, 0, int(Kind.EXECUTION) << 8),
        (HALF, END - HALF, Kind.REST, 5, COUNTED),
    ]


def test_a_gap_says_when_and_what_was_counted() -> None:
    """Each part and kind is a row; none is a record any more."""
    records, gaps, in_gaps = split(stored((0, 10, Kind.FUNCTION, 0, 0), *gap()))
    assert (len(records), len(in_gaps)) == (1, 0)
    told = sorted(zip(*(getattr(gaps, name).tolist() for name in ("start_ns", "end_ns", "kind", "calls")), strict=True))
    assert told == [(BEGIN, HALF, Kind.EXECUTION, 0), (BEGIN, HALF, Kind.FUNCTION, 7), (HALF, END, Kind.FUNCTION, 5)]


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind != Kind.REST])
def test_what_is_recorded_everywhere_stays(kind: Kind) -> None:
    """Of a kind of which calls are missing in gaps, those that were recorded there are set apart; other kinds stay."""
    at = [BEGIN - 1, BEGIN, HALF, END - 1, END]
    records, _, in_gaps = split(stored(*gap(), *((start, 5, kind, 0, 0) for start in at)))
    inside = [BEGIN, HALF, END - 1]
    expected = [] if kind in kinds_with(Trait.STAYS) else inside
    assert in_gaps.start_ns.tolist() == expected
    assert records.start_ns.tolist() == [start for start in at if start not in expected]


@pytest.mark.parametrize("kind", kinds_with(Trait.THINNABLE))
def test_calls_that_were_counted_stay_where_their_records_do(kind: Kind) -> None:
    """Of 12,000 runs of ONNX Runtime a second one in three is a record; the others are counted, in gaps as well."""
    records, _, in_gaps = split(stored(*gap(), (BEGIN, 5, Kind.COUNTS, 700, int(kind) << SHAPE_SHIFT)))
    stays = kind in kinds_with(Trait.STAYS)
    assert (records.arg.tolist(), in_gaps.arg.tolist()) == (([700], []) if stays else ([], [700]))


@pytest.mark.parametrize(
    ("kind", "at", "calls"),
    [
        (Kind.FUNCTION, [BEGIN, HALF - 1, HALF, END - 1], [7 + 2, 5 + 2]),
        (Kind.FUNCTION, [BEGIN - 1, END], [7, 5]),
        (Kind.HOOK, [BEGIN, HALF], [7, 5]),  # of another kind than what is counted
    ],
)
def test_calls_that_were_recorded_are_counted_with_the_others(kind: Kind, at: list[int], calls: list[int]) -> None:
    """A wrapper that could not be exchanged for the one that counts goes on recording."""
    _, gaps, _ = split(stored(*gap(), *((start, 5, kind, 0, 0) for start in at)))
    assert gaps.calls[gaps.kind == Kind.FUNCTION].tolist() == calls
    assert gaps.calls[gaps.kind == Kind.EXECUTION].tolist() == [0]


def test_a_long_part_holds_what_follows_a_short_one() -> None:
    """Parts that overlap, as no agent writes them, are one gap; a part without a length holds nothing."""
    rows = [(BEGIN, END - BEGIN, Kind.REST, 1, COUNTED), (HALF, 1, Kind.REST, 1, COUNTED), (END, 0, Kind.REST, 1, 0)]
    records, gaps, in_gaps = split(stored(*rows, (HALF + 10, 1, Kind.HOOK, 0, 0), (END, 1, Kind.HOOK, 0, 0)))
    assert (len(gaps), in_gaps.start_ns.tolist(), records.start_ns.tolist()) == (3, [HALF + 10], [END])


def test_updates_that_gaps_recorded_are_counted() -> None:
    """Nothing detaches a hook of PyTorch's optimizers: its calls in a gap are its records, those dropped included."""
    thinned = int(Kind.APPLY) << SHAPE_SHIFT
    rows = [
        (BEGIN - 1, 0, Kind.APPLY, 0, 0),
        (BEGIN, 0, Kind.APPLY, 0, Flag.THINNED),
        (BEGIN + 1, 0, Kind.APPLY, 0, Flag.NESTED),
        (BEGIN + 2, 0, Kind.COUNTS, 30, thinned),
        (END - 1, 0, Kind.APPLY, 0, 0),
        (END, 0, Kind.COUNTS, 500, thinned),
    ]
    _, gaps, _ = read(stored(*gap(), *rows))
    mine = gaps.take(gaps.kind == Kind.APPLY)
    assert list(zip(mine.start_ns.tolist(), mine.end_ns.tolist(), mine.calls.tolist(), strict=True)) == [
        (BEGIN, HALF, 31),
        (HALF, END, 1),
    ]
    assert gaps.calls[gaps.kind == Kind.FUNCTION].tolist() == [7, 5]
    assert (np.diff(gaps.start_ns) >= 0).all()


@pytest.mark.parametrize("kind", [Kind.HOOK, Kind.GC, Kind.PYFUNC])
def test_what_makes_no_step_is_not_counted_with_them(kind: Kind) -> None:
    """Other calls that gaps record say nothing of steps."""
    _, gaps, _ = read(stored(*gap(), (BEGIN, 1, kind, 0, 0), (HALF, 1, Kind.COUNTS, 9, int(kind) << SHAPE_SHIFT)))
    assert gaps.calls.tolist() == split(stored(*gap()))[1].calls.tolist()
