"""A pause that came once is no part of a mean step; those that come again, and work between epochs, are."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, NESTED, Job, S

from stepscope.wire.kinds import Kind

STEP, PAUSE = 20 * MS, 9 * S


def paused(*after: int, count: int = 120, pause: int = PAUSE, evaluates: bool = False) -> Job:
    """A fit of so many steps of 20 ms that does something else after some of them."""
    job = Job()
    execution, evaluate = job.execution("train"), job.loop("evaluate", line=15)
    at = 0
    for number in range(count):
        execution.at(at, STEP - MS, arg=1)
        at += STEP
        if number in after:
            if evaluates:
                evaluate.at(at, pause - MS, flags=NESTED)
            at += pause
    job.loop("fit").at(0, at)
    return job


def test_a_pause_that_came_once_is_in_no_step() -> None:
    """Nine seconds between two epochs of one fit leave a step of 20 ms."""
    found = paused(59).steps()
    assert set(found.durations[found.steady].tolist()) == {STEP}


def test_a_pause_of_a_loop_of_ones_own_is_in_no_step() -> None:
    """The same without Keras, and for a pause of only twenty-five steps."""
    job = Job()
    job.function().every(STEP, 60, dur=15 * MS)
    job.function().every(STEP, 60, dur=15 * MS, start=60 * STEP + 500 * MS)
    found = job.steps()
    assert set(found.durations[found.steady].tolist()) == {STEP}


@pytest.mark.parametrize("after", [(39, 79), (29, 59, 89)])
def test_pauses_that_come_again_stay(after: tuple[int, ...]) -> None:
    """What comes after every thirty or forty steps is a part of the work."""
    found = paused(*after).steps()
    assert found.steady_ns > len(after) * PAUSE


def test_a_pause_among_few_steps_stays() -> None:
    """One of eight long batches may be what every eighth is."""
    found = paused(4, count=10).steps()
    assert found.steady_ns > PAUSE


def test_an_evaluation_between_two_epochs_stays() -> None:
    """It is what every epoch does, though a run of two shows it once."""
    found = paused(59, evaluates=True).steps()
    assert found.steady_ns > PAUSE


@pytest.mark.parametrize("calls", [50, 2])
def test_gaps_say_whether_a_pause_recurs(calls: int) -> None:
    """One pause was observed; in each second of the gaps the steps were counted as usual, or nearly none were."""
    pause = 900 * MS
    job = paused(59, pause=pause)
    end = 120 * STEP + pause
    for number in range(4):
        job.gap(end + number * 2 * S, S, calls, kind=Kind.FUNCTION)
        job.execution("train").every(STEP, 50, dur=STEP - MS, start=end + S + number * 2 * S, arg=1)
    found = job.steps()
    longest = int(found.durations[found.steady].max())
    assert longest == (STEP if calls == 50 else STEP + pause)
