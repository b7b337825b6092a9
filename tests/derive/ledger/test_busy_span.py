"""When steps were made, without a long pause that came once: over that time rates of what is sampled mean something."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job, S

from stepscope.derive.ledger import pauses
from stepscope.derive.steps.steps import Steps
from stepscope.detectors.costs import cost_of
from stepscope.wire.kinds import Kind

STEP = 10 * MS


def stretches(*pieces: tuple[int, int]) -> Steps:
    """Steps of 10 ms: so many from each of these times on."""
    job = Job()
    for begin, count in pieces:
        job.function().every(STEP, count, dur=8 * MS, start=begin)
    return job.steps()


def test_the_longest_stretch_counts() -> None:
    """A pause of 9 s between 2 s and 3 s of steps would make a CPU that is always busy one that mostly idles."""
    low, high = pauses.busy_span(stretches((0, 200), (11 * S, 300)))
    assert low >= 10 * S
    assert 14 * S - 2 * STEP <= high <= 14 * S


def test_a_short_pause_is_no_matter() -> None:
    """Half a second of twelve."""
    steps = stretches((0, 600), (6500 * MS, 600))
    assert pauses.busy_span(steps) == steps.span


def test_pauses_that_recur_are_a_part_of_the_run() -> None:
    """Each epoch ends with one: what the machine does meanwhile counts."""
    steps = stretches(*((number * 4 * S, 200) for number in range(5)))
    assert pauses.busy_span(steps) == steps.span


def counted(calls: int, pause: int = 0) -> Job:
    """Timed steps of 10 ms, and two seconds in which so many were counted, before a pause."""
    job = Job()
    step = job.function()
    step.every(STEP, 100, dur=8 * MS)
    job.gap(S, 2 * S, calls, Kind.FUNCTION)
    step.every(STEP, 100, dur=8 * MS, start=3 * S + pause)
    return job


@pytest.mark.parametrize(("calls", "mean"), [(100, 40 / 3), (200, 10), (400, 20 / 3)])
def test_the_mean_is_that_of_all_steps(calls: int, mean: float) -> None:
    """Those that were only counted took longer than the timed ones, or less."""
    assert pauses.mean_ns(counted(calls).steps()) == pytest.approx(mean * MS, rel=0.02)


def test_a_pause_after_a_gap_is_not_in_the_mean() -> None:
    """Nine seconds without a call."""
    assert pauses.mean_ns(counted(200, pause=9 * S).steps()) == pytest.approx(10 * MS, rel=0.05)


@pytest.mark.parametrize(
    ("calls", "low", "high"), [(200, 0.2, 0.2), (100, 0.2 * 3 / 4, 0.2 * 3 / 4 + 1 / 4), (400, 0.0, 0.3)]
)
def test_a_cost_of_the_timed_steps_holds_what_all_steps_say(calls: int, low: float, high: float) -> None:
    """What the timed steps lack may all be of it; what they have too much, too."""
    cost = cost_of(counted(calls).view(), 0.2)
    assert (cost.low, cost.ratio, cost.high) == pytest.approx((low, 0.2, high), abs=0.01)


def test_a_share_of_all_the_time_holds_as_it_is() -> None:
    """Such as that of CPUs, read once a second."""
    cost = cost_of(counted(100).view(), 0.2, low=0.1, high=0.3, by_time=True)
    assert (cost.low, cost.ratio, cost.high) == (0.1, 0.2, 0.3)
