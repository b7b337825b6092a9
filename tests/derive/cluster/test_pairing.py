"""Steps of members are paired by when they end, or by their rhythm, never by their number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.derive.cluster.scripted import MS, Scripted, calls, noisy, without

from stepscope.derive.cluster import clock, stretches
from stepscope.derive.cluster.clock import ClockOffset
from stepscope.derive.cluster.member_calls import MemberCalls
from stepscope.derive.cluster.pairing import MAX_SPREAD, pair

STEPS = 500
HERE = clock.same()


def job(members: int = 2) -> Scripted:
    """A job with some jitter, which all members share."""
    rng = np.random.default_rng(3)
    return Scripted(own=noisy(STEPS, members), transfer=9 * MS + rng.exponential(2 * MS, STEPS))


def wrong(rows: np.ndarray, shift: int) -> int:
    """Pairs of different steps, of a second member whose numbers are lower by ``shift``."""
    both = (rows >= 0).all(axis=1)
    return int((rows[both, 0] != rows[both, 1] + shift).sum())


def test_by_clock_after_a_late_start() -> None:
    """A member that started 37 steps late, and lost some: the same steps are paired, the others have no partner."""
    one, two = job().members()
    found = pair([one, without(two, 37, range(100, 120))], [HERE, HERE])
    assert found.basis == ("clock", "clock")
    assert found.synchronous == (True, True)
    both = (found.rows >= 0).all(axis=1)
    assert both.sum() == STEPS - 37 - 20
    ends = one.exits[found.rows[both, 0]]
    assert ends.tolist() == without(two, 37, range(100, 120)).exits[found.rows[both, 1]].tolist()


def test_members_that_rest_at_different_times() -> None:
    """Wrappers rest for most of the steps, in each member at other times: what both have recorded is paired."""
    one, two = job().members()
    rests = [n for n in range(STEPS) if n % 100 >= 40], [n for n in range(STEPS) if not 25 <= n % 100 < 65]
    found = pair([without(one, 0, rests[0]), without(two, 0, rests[1])], [HERE, HERE])
    assert found.synchronous == (True, True)
    both = (found.rows >= 0).all(axis=1)
    assert both.sum() == STEPS // 100 * 15
    kept = [np.setdiff1d(np.arange(STEPS), rest) for rest in rests]
    pairs = found.rows[both]
    assert (kept[0][pairs[:, 0]] == kept[1][pairs[:, 1]]).all()


@pytest.mark.parametrize("shift", [0, 37, 200])
def test_by_rhythm_with_unknown_drifting_clocks(shift: int) -> None:
    """Clocks a day apart that drift by 50 ppm: the durations say which step is which."""
    one, two = job().members(offsets=[0.0, 86_400e9], drift=[0.0, 50e-6])
    found = pair([one, without(two, shift)], [HERE, None])
    assert found.basis[1] == "rhythm"
    assert found.synchronous == (True, True)
    assert wrong(found.rows, shift) == 0
    assert (found.rows >= 0).all(axis=1).sum() == STEPS - shift


def test_a_bound_as_wide_as_the_step_is_no_clock() -> None:
    """An offset known to a second says nothing about steps of 10 ms: their rhythm decides."""
    one, two = job().members(offsets=[0.0, 7e9])
    wide = ClockOffset(times_ns=np.zeros(1, np.int64), offset_ns=np.full(1, -7.3e9), bound_ns=np.full(1, 1e9))
    found = pair([one, without(two, 12)], [HERE, wide])
    assert found.basis[1] == "rhythm"
    assert wrong(found.rows, 12) == 0


def test_an_offset_is_used_within_its_bound() -> None:
    """Two hosts, an offset with its bound: pairs by the clock."""
    one, two = job().members(offsets=[0.0, 7e9])
    known = ClockOffset(times_ns=np.zeros(1, np.int64), offset_ns=np.full(1, -7e9 + 3e5), bound_ns=np.full(1, 4e5))
    found = pair([one, without(two, 12)], [HERE, known])
    assert found.basis == ("clock", "clock")
    assert wrong(found.rows, 12) == 0


def test_members_that_wait_for_nobody_are_not_synchronous() -> None:
    """Workers of a parameter server, each at its own pace: no common steps, whatever the clocks."""
    rng = np.random.default_rng(4)
    members = []
    for pace in (10 * MS, 11 * MS):
        exits = np.cumsum(pace + rng.exponential(2 * MS, STEPS)).astype(np.int64)
        members.append(calls(exits - int(5 * MS), exits))
    assert pair(members, [HERE, HERE]).synchronous == (True, False)
    assert pair(members, [HERE, None]).synchronous == (True, False)


def test_ends_that_a_busy_machine_delays() -> None:
    """Members that leave up to half a step late, in turn, share each exchange: none leaves before all are in."""
    rng = np.random.default_rng(5)
    entries, exits = np.empty((STEPS, 2), np.int64), np.empty((STEPS, 2), np.int64)
    before = np.zeros(2)
    for n in range(STEPS):
        entries[n] = before + 0.1 * MS
        before = entries[n].max() + 5 * MS + rng.uniform(0, 8 * MS, 2)
        exits[n] = before
    one, two = calls(entries[:, 0], exits[:, 0]), calls(entries[:, 1], exits[:, 1])
    found = pair([one, without(two, 7)], [HERE, HERE])
    assert found.synchronous == (True, True)
    assert wrong(found.rows, 7) == 0


def test_equal_pace_is_no_exchange() -> None:
    """Members at the same pace whose calls lie in turn: one leaves before the other enters, so none waits."""
    exits = (np.arange(1, STEPS + 1) * 10 * MS).astype(np.int64)
    one = calls(exits - int(3 * MS), exits)
    two = calls(exits + int(1 * MS), exits + int(4 * MS))
    assert pair([one, two], [HERE, HERE]).spread[1] == 0.0
    assert not pair([one, two], [HERE, HERE]).synchronous[1]


def test_equal_numbers_without_rhythm_are_paired_by_count() -> None:
    """Steps as regular as a clock have no rhythm: equal numbers of them, and ends that fit, are paired in order."""
    steady = Scripted(own=np.full((STEPS, 2), 1 * MS), transfer=np.full(STEPS, 9 * MS))
    found = pair(steady.members(offsets=[0.0, 5e12]), [HERE, None])
    assert found.basis[1] == "count"
    assert found.synchronous[1]
    one, two = steady.members(offsets=[0.0, 5e12])
    assert pair([one, without(two, 5)], [HERE, None]).basis[1] == "none"


def test_few_steps_are_not_paired() -> None:
    """Fewer than twenty."""
    short = Scripted(own=noisy(12, 2), transfer=np.full(12, 9 * MS))
    assert pair(short.members(), [HERE, HERE]).basis == ("clock", "none")


def test_workers_that_only_share_a_server_do_not_wait_for_each_other() -> None:
    """Recorded: steps of equal length on shared cores end near to each other three times of four, by no exchange."""
    workers = recorded("asynchronous")
    assert sum(pair(workers, [HERE, HERE]).synchronous) == 1


def test_ranks_that_a_busy_machine_lets_leave_late_wait_for_each_other() -> None:
    """Recorded: ends a quarter of a step apart, most calls not recorded, and none ends before both have begun."""
    ranks = recorded("horovod-fit")
    found = pair(ranks, [HERE, HERE])
    assert found.synchronous == (True, True)
    assert max(found.spread) > MAX_SPREAD
    both = (found.rows >= 0).all(axis=1)
    assert both.sum() > 60
    entries = [one.entries[found.rows[both, j]] for j, one in enumerate(ranks)]
    exits = [one.exits[found.rows[both, j]] for j, one in enumerate(ranks)]
    assert (np.maximum(*entries) <= np.minimum(*exits)).all()


@pytest.mark.parametrize(("late", "synchronous"), [(0.0, True), (0.7, False)])
def test_the_order_is_broken_by_one_step_of_many_or_it_is_none(late: float, synchronous: bool) -> None:
    """The same ranks, of which the second does not wait in some steps: it enters when the first has left."""
    one, two = recorded("horovod-fit")
    rng = np.random.default_rng(6)
    moved = np.cumsum(rng.normal(0, late * two.period_ns, len(two.exits))).astype(np.int64)
    found = pair([one, calls(two.entries + moved, two.exits + moved)], [HERE, HERE])
    assert all(found.synchronous) == synchronous


def test_an_order_that_nothing_could_break_is_no_evidence() -> None:
    """Calls of equal length, half a step apart, that never move against each other: no exchange is seen in them."""
    exits = np.arange(1, STEPS + 1, dtype=np.float64) * 10 * MS
    calm = stretches.SharedClockCalls(entries=exits - 9 * MS, exits=exits)
    later = stretches.SharedClockCalls(entries=calm.entries + 4 * MS, exits=calm.exits + 4 * MS)
    found = stretches.pair(calm, later, 10 * MS, 0.0)
    assert found.causal == 1.0
    assert not found.evident


def recorded(name: str) -> list[MemberCalls]:
    """Calls of two members of a real job."""
    data = Path(__file__).parents[2] / "data" / "member-calls" / f"{name}.json"
    return [
        calls(np.array(one["entries_us"]) * 1000, np.array(one["exits_us"]) * 1000)
        for one in json.loads(data.read_text())
    ]
