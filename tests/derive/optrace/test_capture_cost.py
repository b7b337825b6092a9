"""What a capture cost: the tests choose how much slower traced steps are, and that is what must be told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from stepscope.derive.optrace import capture_cost
from stepscope.model.log.events import CaptureTaken
from stepscope.tables.records import Gaps, RecordTable
from stepscope.wire.kinds import Flag, Kind

MS = 1_000_000
ANCHOR = (int(Kind.EXECUTION), 7)


def table(durations: Sequence[int], *, name: int = 7, thread: int = 1, flags: int = 0) -> RecordTable:
    """Calls of which each ends so many ns after the one before; a call takes half of its step."""
    ends = np.cumsum(np.array(durations, np.int64))
    spent = np.array(durations, np.int64) // 2
    count = len(durations)
    same = {"arg": 1, "name": name, "kind": ANCHOR[0], "flags": flags, "thread": thread}
    columns = {key: np.full(count, value, np.int64) for key, value in same.items()}
    return RecordTable(start_ns=ends - spent, dur_ns=spent, seq=np.arange(1, count + 1), **columns)


def capture(at: int, recorded: int, **more: object) -> CaptureTaken:
    """A capture of the anchor's steps."""
    plain = CaptureTaken(
        id="a", way="profiler", outcome="done", anchors=[ANCHOR], thread=1, at=at, recorded_ns=recorded
    )
    return msgspec.structs.replace(plain, **more)


def measured(records: RecordTable, of: CaptureTaken, gaps: Gaps | None = None) -> capture_cost.CaptureCost:
    """What the capture cost a job, without gaps unless some are given."""
    return capture_cost.measure(records, gaps or Gaps.empty(), of)


def jittered(count: int, step: int, seed: int) -> list[int]:
    """Steps of about ``step``, give or take one percent."""
    return [int(value) for value in np.random.default_rng(seed).normal(step, step / 100, count)]


def test_slower_steps_are_told_with_their_interval() -> None:
    """Ten steps that take 10 % longer between ninety that do not."""
    before, traced, after = jittered(40, 10 * MS, 1), jittered(10, 11 * MS, 2), jittered(50, 10 * MS, 3)
    at = sum(before) + 1
    cost = measured(table([*before, 5 * MS, *traced, *after]), capture(at, 5 * MS + sum(traced)))
    assert cost.traced == 10
    assert cost.neighbours == 40
    assert cost.ratio == pytest.approx(0.10, abs=0.02)
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low < 0.10 < cost.high
    assert cost.slower_ns == pytest.approx(10 * MS, rel=0.2)


def test_a_machine_that_changed_meanwhile_widens_the_interval() -> None:
    """Neighbours of 10 ms before and 12 ms after: whether 11 ms are slower or faster cannot be said."""
    steps = [10 * MS] * 40 + [11 * MS] * 10 + [12 * MS] * 40
    cost = measured(table(steps), capture(400 * MS, 110 * MS))
    assert cost.low == pytest.approx(11 / 12 - 1)
    assert cost.high == pytest.approx(0.1)


def test_the_first_partial_step_is_no_step_of_the_capture() -> None:
    """The step in which recording began is neither traced nor a neighbour, whatever it took."""
    steps = [10 * MS] * 20 + [40 * MS] + [10 * MS] * 30
    cost = measured(table(steps), capture(205 * MS, 140 * MS))
    assert (cost.traced, cost.ratio) == (10, 0.0)


def test_steps_while_it_is_written_are_told_apart() -> None:
    """Two steps of 30 ms instead of 10 while the trace was written: 40 ms of delay, and no slower traced step."""
    steps = [10 * MS] * 30 + [30 * MS] * 2 + [10 * MS] * 30
    cost = measured(table(steps), capture(200 * MS, 100 * MS, export_ns=59 * MS, cpu_ns=12 * MS))
    assert (cost.ratio, cost.slower_ns, cost.export_delay_ns, cost.cpu_ns) == (0.0, 0, 40 * MS, 12 * MS)
    assert cost.cost_ns == 40 * MS


def test_the_time_to_write_is_booked_also_where_nobody_waited() -> None:
    """With a free CPU no step is late; what it took of that CPU is the cost."""
    cost = measured(table([10 * MS] * 60), capture(200 * MS, 100 * MS, export_ns=59 * MS, cpu_ns=12 * MS))
    assert (cost.export_delay_ns, cost.cost_ns) == (0, 12 * MS)


def test_faster_steps_earn_nothing() -> None:
    """Noise in the other direction is told as it is, and costs nothing."""
    steps = [10 * MS] * 20 + [9 * MS] * 10 + [10 * MS] * 20
    cost = measured(table(steps), capture(200 * MS, 90 * MS))
    assert cost.ratio == pytest.approx(-0.1)
    assert cost.slower_ns == 0


def test_an_epoch_s_end_is_nobody_s_cost() -> None:
    """A step of many medians is left out, whichever side it is on."""
    steps = [10 * MS] * 20 + [*([10 * MS] * 5), 900 * MS, *([10 * MS] * 4)] + [10 * MS] * 20
    cost = measured(table(steps), capture(200 * MS, 990 * MS))
    assert (cost.ratio, cost.slower_ns) == (0.0, 0)


def test_neighbours_are_near() -> None:
    """A job that slows down is not charged to the capture: only what is beside it counts."""
    steps = [2 * MS] * 300 + [10 * MS] * 60
    cost = measured(table(steps), capture((600 + 250) * MS, 100 * MS))
    assert cost.ratio == 0.0
    assert cost.step_ns == 10 * MS


@pytest.mark.parametrize(("traced", "known"), [(2, False), (3, True)])
def test_too_few_steps_give_no_ratio(traced: int, *, known: bool) -> None:
    """With fewer than three nothing is said of a ratio; what they took longer is still booked."""
    steps = [10 * MS] * 20 + [20 * MS] * traced + [10 * MS] * 20
    cost = measured(table(steps), capture(200 * MS, traced * 20 * MS))
    assert (cost.ratio is not None) is known
    assert cost.slower_ns == traced * 10 * MS


def test_a_single_run_of_a_session() -> None:
    """The traced run is found by its own time; its record ends a little later than its trace."""
    records = table([10 * MS] * 20 + [14 * MS] + [10 * MS] * 20)
    cost = measured(records, capture(int(records.start_ns[20]) + 1, 6 * MS, way="run-metadata"))
    assert (cost.traced, cost.slower_ns) == (1, 4 * MS)


def test_without_steps_only_the_writing_is_known() -> None:
    """Records of other threads and names, and ends of iterators, are no steps."""
    for other in (table([MS] * 9, name=8), table([MS] * 9, thread=2), table([MS] * 9, flags=int(Flag.END))):
        cost = measured(other, capture(0, MS, cpu_ns=5))
        assert cost == capture_cost.CaptureCost(cpu_ns=5)


def test_steps_that_hold_a_gap_stand_for_many() -> None:
    """A step with a gap inside is no neighbour."""
    steps = [10 * MS] * 30
    plain = table(steps)
    row = {"start_ns": 295 * MS, "end_ns": 795 * MS, "kind": int(Kind.EXECUTION)}
    gap = Gaps(**{name: np.array([row.get(name, 0)], np.int64) for name in Gaps.__struct_fields__})
    later = table([800 * MS, *([10 * MS] * 9)])
    shifted = RecordTable(
        **{
            name: getattr(later, name) + (300 * MS if name == "start_ns" else 0)
            for name in RecordTable.__struct_fields__
        }
    )
    records = RecordTable.concat([plain, shifted])
    cost = measured(records, capture(100 * MS, 100 * MS), gap)
    assert cost.step_ns == 10 * MS
    assert cost.neighbours == 9 + 9 + 9
