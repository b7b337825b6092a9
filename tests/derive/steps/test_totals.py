"""The total of a run's steps, those included that were only counted."""

from __future__ import annotations

import pytest
from tests.derive.counted_steps import COUNTED, PERIOD, WINDOW, with_gap
from tests.derive.sessions import MS, Job, S

from stepscope.derive.steps import totals
from stepscope.derive.steps.steps import Steps


def _steps(job: Job) -> Steps:
    found = job.steps()
    assert found is not None
    return found


def test_steps_of_a_gap_are_in_the_total() -> None:
    """1,200 steps of 2 ms, of which 200 were recorded: all after the warm-up but the last, whose end is unknown."""
    found = totals.of(_steps(with_gap()))
    assert found is not None
    assert found.count == 2 * WINDOW + COUNTED - 2
    assert found.timed == 2 * WINDOW - 3
    assert found.ns == pytest.approx(found.count * PERIOD, rel=1e-6)


@pytest.mark.parametrize("slower", [1, 4])
def test_what_is_slower_while_steps_are_only_counted_is_in_the_mean(slower: int) -> None:
    """The timed steps of a run whose counted ones take four times as long say a quarter of its mean step."""
    job = Job()
    call = job.execution()
    gap = COUNTED * PERIOD * slower
    again = WINDOW * PERIOD + gap
    job.loop().at(0, again + WINDOW * PERIOD)
    for start in (0, again):
        call.every(PERIOD, WINDOW, dur=MS, start=start, arg=1)
    job.gap((WINDOW - 1) * PERIOD + MS + 1, gap + PERIOD - MS - 2, COUNTED)
    steps = _steps(job)
    found = totals.of(steps)
    assert found is not None
    assert set(steps.durations[steps.steady].tolist()) == {PERIOD}
    mean = (2 * WINDOW + COUNTED * slower) / (2 * WINDOW + COUNTED) * PERIOD
    assert found.mean_ns == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("slower", [1, 3])
def test_steps_counted_after_the_last_that_was_timed_bring_their_time(slower: int) -> None:
    """A run that ends in a gap: its steps were in the number, and their time was not in the sum."""
    job = Job()
    gap = COUNTED * PERIOD * slower
    job.loop().at(0, WINDOW * PERIOD + gap)
    job.execution().every(PERIOD, WINDOW, dur=MS, arg=1)
    job.gap((WINDOW - 1) * PERIOD + MS + 1, gap + PERIOD - MS - 2, COUNTED)
    found = totals.of(_steps(job))
    assert found is not None
    assert found.mean_ns == pytest.approx((WINDOW + COUNTED * slower) / (WINDOW + COUNTED) * PERIOD, rel=0.01)


def test_a_pause_is_no_part_of_it() -> None:
    """Two loops of 50 steps with ten seconds between them."""
    job = Job()
    call = job.execution()
    for start in (0, 50 * 100 * MS + 10 * S):
        job.loop().at(start, 50 * 100 * MS)
        call.every(100 * MS, 50, dur=90 * MS, start=start, arg=1)
    steps = _steps(job)
    found = totals.of(steps)
    assert found is not None
    assert (found.count, found.ns) == (steps.steady_count, float(steps.steady_ns))
    assert found.mean_ns == pytest.approx(100 * MS)
