"""Which of several calls that repeat is the step."""

from __future__ import annotations

from tests.derive.sessions import MS, Job
from tests.detectors.fit_jobs import on_batch

from stepscope.derive.steps.step_candidates import UPDATES


def test_a_long_validation_does_not_make_batches_the_steps() -> None:
    """A custom loop that validates on many batches after each epoch has its training function as step."""
    job = Job()
    train, test, nexts = job.function("train_step", line=10), job.function("test_step", line=20), job.nexts()
    at = 0
    for _ in range(3):
        for function, count, period in ((train, 200, 100 * MS), (test, 100, 60 * MS)):
            for _ in range(count):
                nexts.at(at, 5 * MS)
                function.at(at + 6 * MS, period // 2)
                at += period
    assert job.steps().title == "tf.function train_step"


def test_samples_of_train_on_batch() -> None:
    """The samples that a train_on_batch call knows are the step's."""
    assert set(on_batch(2 * MS, 90 * MS).steps().samples.tolist()) == {32}


def _epochs(job: Job, *, between: int) -> None:
    """Six epochs of so many training steps, a call of another function after each."""
    train, other = job.function("train_step", line=10, role=UPDATES), job.function("squared_error", line=20)
    at = 0
    for _ in range(6):
        for _ in range(between):
            train.at(at, 4 * MS)
            at += 5 * MS
        other.at(at, 5 * MS)
        at += 400 * MS


def test_a_call_of_each_epoch_is_no_step() -> None:
    """A function called once after many training steps is not the step, whatever time lies between its calls."""
    job = Job()
    _epochs(job, between=20)
    found = job.steps()
    assert found.title == "tf.function train_step"
    assert "not-around-training" in [left.rule for left in found.why]


def test_a_call_of_each_training_step_may_be_the_step() -> None:
    """A call that comes as often as the training steps is not left out as one around them."""
    job = Job()
    _epochs(job, between=1)
    assert "not-around-training" not in [left.rule for left in job.steps().why]
