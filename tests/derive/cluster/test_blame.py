"""Whom members wait for, in scripted jobs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.cluster.scripted import MS, Scripted, noisy, without

from stepscope.derive.cluster import blame, clock, pairing
from stepscope.derive.cluster.blame import median_of_others

STEPS = 400
HERE = clock.same()


def blamed(job: Scripted, clocks: list[clock.ClockOffset | None] | None = None, **own: list[float]) -> blame.Blame:
    """The blame in a job."""
    members = job.members(**own)
    found = blame.build(members, pairing.pair(members, clocks or [HERE] * len(members)))
    assert found is not None
    return found


@pytest.mark.parametrize("members", [2, 3, 8])
@pytest.mark.parametrize("known", [True, False])
def test_a_straggler_and_nobody_else(members: int, known: bool) -> None:
    """30 ms more on one member of a 10 ms step: its blame within 10 %, what mending it gains, none for the others."""
    own = noisy(STEPS, members)
    own[:, 1] += 30 * MS
    rng = np.random.default_rng(2)
    job = Scripted(own=own, transfer=9 * MS + np.abs(rng.normal(0, 1 * MS, STEPS)))
    offsets = [1e12 * j for j in range(members)]
    found = (
        blamed(job)
        if known
        else blamed(job, [None] * members, offsets=offsets, drift=[1e-5 * j for j in range(members)])
    )
    assert found.blame_median_ns[1] == pytest.approx(30 * MS, rel=0.1)
    assert found.gain[1].ratio == pytest.approx(30 * MS / found.period_ns, rel=0.1)
    assert found.gain[1].low <= found.gain[1].ratio <= found.gain[1].high
    assert found.last_ratio[1] == 1.0
    others = [j for j in range(members) if j != 1]
    assert max(found.blame_median_ns[others]) < 0.5 * MS
    assert [found.gain[j].ratio for j in others] == [0.0] * len(others)
    assert found.waits_ns[others] == pytest.approx([30 * MS] * len(others), rel=0.1)
    assert found.waits_ns[1] == pytest.approx(0.0, abs=0.1 * MS)
    assert found.transfer_ns == pytest.approx(9.8 * MS, rel=0.1)


def test_distance_is_nobodys_blame() -> None:
    """A member 10 ms away leaves, and so arrives, last in every step: its own time is as short as the others'."""
    job = Scripted(own=noisy(STEPS, 2, noise=0.01 * MS), transfer=np.full(STEPS, 20 * MS), late=[10 * MS, 0.0])
    found = blamed(job)
    assert max(found.blame_median_ns) < 0.05 * found.period_ns
    assert max(share.high for share in found.gain) < 0.01
    assert found.transfer_ns > 0.8 * found.period_ns


def test_stragglers_in_turn() -> None:
    """Another member is slow in each step: no member's fault for long, and what evening it out gains is known."""
    own = noisy(STEPS, 4)
    own[np.arange(STEPS), np.arange(STEPS) % 4] += 20 * MS
    found = blamed(Scripted(own=own, transfer=np.full(STEPS, 9 * MS)))
    assert found.last_ratio == pytest.approx([0.25] * 4, abs=0.01)
    assert max(found.blame_median_ns) < 1 * MS
    assert found.spread_median_ns == pytest.approx(20 * MS, rel=0.1)
    assert found.even.ratio == pytest.approx(20 / 30, rel=0.1)


def test_two_stragglers_share_what_can_be_gained() -> None:
    """Of two equally slow members, fixing one alone gains next to nothing."""
    own = noisy(STEPS, 5)
    own[:, 1:3] += 30 * MS
    found = blamed(Scripted(own=own, transfer=np.full(STEPS, 9 * MS)))
    assert found.blame_median_ns[1:3] == pytest.approx([30 * MS] * 2, rel=0.1)
    assert max(share.ratio for share in found.gain) < 0.01
    assert found.even.ratio == pytest.approx(30 / 40, rel=0.1)


def test_work_inside_the_call_counts_if_all_show_it() -> None:
    """What a trace shows a member to compute before it waits is its own, too."""
    job = Scripted(own=noisy(STEPS, 2), transfer=np.full(STEPS, 40 * MS))
    members = job.members()
    paired = pairing.pair(members, [HERE] * 2)
    found = blame.build(members, paired, [5 * MS, 25 * MS])
    assert found is not None
    assert found.blame_median_ns[1] == pytest.approx(20 * MS, rel=0.05)
    assert found.blame_median_ns[0] == pytest.approx(0.0, abs=1 * MS)


def test_a_member_that_lacks_steps_is_judged_by_those_it_has() -> None:
    """A late start and lost records cost steps, and put no blame on others."""
    own = noisy(STEPS, 3)
    own[:, 2] += 10 * MS
    members = Scripted(own=own, transfer=np.full(STEPS, 9 * MS)).members()
    members[0] = without(members[0], 60, range(200, 230))
    found = blame.build(members, pairing.pair(members, [HERE] * 3))
    assert found is not None
    assert found.blame_median_ns[2] == pytest.approx(10 * MS, rel=0.1)
    assert max(found.blame_median_ns[:2]) < 0.5 * MS


def test_too_few_steps_say_nothing() -> None:
    """Fewer common steps than twenty, or one member."""
    members = Scripted(own=noisy(20, 2), transfer=np.full(20, 9 * MS)).members()
    assert blame.build(members, pairing.pair(members, [HERE] * 2)) is None
    alone = Scripted(own=noisy(STEPS, 1), transfer=np.full(STEPS, 9 * MS)).members()
    assert blame.build(alone, pairing.pair(alone, [HERE])) is None


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_median_of_others(count: int) -> None:
    """As by removing each entry in turn, ties included."""
    values = np.random.default_rng(count).integers(0, 5, (50, count)).astype(float)
    expected = [[np.median(np.delete(row, j)) for j in range(count)] for row in values]
    assert median_of_others(values, np.sort(values, axis=1)).tolist() == expected
