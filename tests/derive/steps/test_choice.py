"""Which of several calls that repeat is the step."""

from __future__ import annotations

from tests.derive.sessions import MS, Job
from tests.detectors.fit_jobs import on_batch


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
