"""What a job does after the steps that were traced."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, POOL, Job, S

from stepscope.sidecar import later_phase
from stepscope.sidecar.later_phase import MIN_CALLS
from stepscope.wire.kinds import Kind


def found(job: Job, *traced: tuple[Kind, int]) -> str:
    """Title of the phase that a job is in after these calls were traced; "" without one."""
    key = job.session().workers[0].info.key
    phase = later_phase.find(job.session(), frozenset((key, int(kind), name) for kind, name in traced))
    return phase.steps.title if phase is not None else ""


def trained(*, over: bool = True) -> tuple[Job, tuple[Kind, int]]:
    """A fit of 20 steps of 10 ms each."""
    job = Job()
    fit = job.loop()
    job.batch(MS, size=8)
    train = job.execution().every(10 * MS, 20, dur=9 * MS, start=MS)
    if over:
        fit.at(MS, 210 * MS)
    return job, (Kind.EXECUTION, train.name.id)


def test_calls_that_take_the_time_since_are_a_phase() -> None:
    """Where they repeat, however long the training was; the calls that make it are known, and so is its cost."""
    job, train = trained()
    calls = job.function("sample").every(100 * MS, MIN_CALLS, dur=99 * MS, start=300 * MS)
    assert found(job, train) == "tf.function sample"
    assert found(job, train, (Kind.FUNCTION, calls.name.id)) == ""


@pytest.mark.parametrize(("times", "dur"), [(MIN_CALLS - 1, 99 * MS), (MIN_CALLS, 40 * MS)], ids=["few", "short"])
def test_what_hardly_repeats_or_takes_little_is_none(times: int, dur: int) -> None:
    """Single calls after a training, and calls between which the program does something else."""
    job, train = trained()
    job.function("sample").every(100 * MS, times, dur=dur, start=300 * MS)
    assert found(job, train) == ""


def test_traced_calls_that_go_on_leave_no_phase() -> None:
    """Others on another thread belong to the same time."""
    job, train = trained()
    job.function("sample").every(10 * MS, 20, dur=9 * MS, start=MS, thread=POOL)
    assert found(job, train) == ""


@pytest.mark.parametrize("over", [True, False], ids=["after", "within"])
def test_an_evaluation_within_a_fit_is_none(over: bool) -> None:
    """One after it is a phase."""
    job, train = trained(over=over)
    job.execution("test").every(100 * MS, 2 * MIN_CALLS, dur=99 * MS, start=300 * MS)
    assert bool(found(job, train)) is over


def test_work_in_turns_is_a_phase_of_what_is_mostly_later() -> None:
    """Calls of which most came before the traced ones ended are part of the same loop."""
    job, train = trained()
    job.function("sample").every(S, 2 * MIN_CALLS, dur=S - MS, start=-9 * S)
    assert found(job, train) == ""
