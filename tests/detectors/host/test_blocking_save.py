"""HST006 blocking-save: its fixtures, and what looks like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.derive.sessions import END, MS, POOL, US, Job
from tests.detectors.asking import codes, find
from tests.detectors.fit_jobs import epochs, read_models
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, STEPS, keras_fit, nothing, saving, train_loop

from stepscope.detectors.host.blocking_save import DETECTOR
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

FIXTURES = Fixtures(
    firing=lambda: saving(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", 60),),
        metrics=("saving_ratio", "save_ns", "steps_between", "calls"),
        title=("blocking checkpoint save", "every 2 steps", "60 ms", "30 %"),
        pipeline_stage="storage",
        remedy="save-less-often",
    ),
    silent=lambda: saving(70 * MS, calls=1),
    not_applicable=nothing,
    missing="steps",
    below=lambda: saving(10 * MS - US),
    at=lambda: saving(10 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_cheap_checkpoint_of_each_epoch_is_none() -> None:
    """Saving that takes less than a twentieth of the time is what everybody wants."""
    assert codes(read_models(epochs(keras_fit(10 * MS), "save", 80 * MS), wait=US)) == []


@pytest.mark.parametrize(("dur", "found"), [(20 * MS, []), (30 * MS, ["HST006"])])
def test_one_checkpoint_of_each_short_epoch_is_none(dur: int, found: list[str]) -> None:
    """Where epochs are short the one save of each is wanted all the same, up to a quarter of the time."""
    job = keras_fit(5 * MS)
    epoch_end, save = job.call(Kind.HOOK, "on_epoch_end", hook="on_epoch_end"), job.save()
    for end in range(STEPS):
        at = end * PERIOD + 50 * MS
        epoch_end.at(at, dur + 10 * US)
        save.at(at, dur)
    assert codes(read_models(job, wait=US)) == found


def test_saving_oftener_than_validation_is_found() -> None:
    """The end of another iterator than the one that the steps pull from is no end of an epoch."""
    job = saving(20 * MS)
    train = job.nexts().every(PERIOD, STEPS, dur=MS, arg=job.iterator())
    other = job.nexts()
    for i in range(1, STEPS):
        other.at(i * PERIOD + 90 * MS, MS, flags=END)
    assert train.name.id != other.name.id
    assert "HST006" in codes(job)


def test_saving_in_a_callback_is_not_the_callbacks_own_work() -> None:
    """A callback that saves on batches is one finding, with the saving's code."""
    job = keras_fit(10 * MS)
    callback = job.callback("ModelCheckpoint.on_train_batch_end", own=False)
    callback.every(PERIOD, STEPS, dur=30 * MS + 20 * US, start=10 * MS)
    job.save("model").every(PERIOD, STEPS, dur=30 * MS, start=10 * MS + 10 * US)
    assert codes(read_models(job, wait=US)) == ["HST006"]


def test_summaries_are_told_apart_from_checkpoints() -> None:
    """Summaries on every step are found by their own words."""
    (found,) = find(saving(60 * MS, kind=Kind.SUMMARY))
    assert found.code == "HST006"
    assert "summaries" in found.title
    assert found.remedies[0].id == "summaries-less-often"


def test_a_background_thread_that_saves_is_none() -> None:
    """Saving on another thread than the step's does not block it."""
    job = train_loop(80 * MS)
    job.save().every(PERIOD, STEPS, dur=70 * MS, thread=POOL)
    assert codes(job) == []


@pytest.mark.parametrize(
    ("saves", "said"),
    [
        (range(9, 420, 10), "every 10 steps"),
        (range(22, 420, 25), "every 25 steps"),
        ((20, 400), "every 41 steps or more"),
    ],
)
def test_the_distance_of_saves_is_not_that_of_timed_steps(saves: Sequence[int], said: str) -> None:
    """300 of 420 steps were only counted: two saves in one window say their distance, others how rare they are."""
    job = Job()
    step, save = job.execution(), job.save()
    at, begins = 0, 0
    for number in range(420):
        timed = not 60 <= number < 360
        begins = at if number == 60 else begins
        if number == 360:
            job.gap(begins - 2 * MS, at - begins, 300)
        if timed:
            step.at(at, 15 * MS, arg=1)
        if timed and number in saves:
            save.at(at + 16 * MS, 400 * MS)
        at += (420 if number in saves else 20) * MS
    job.loop("fit", line=50).at(0, at)
    job.ended_ns = at
    (found,) = (one for one in find(job) if one.code == "HST006")
    assert f"a blocking checkpoint save {said} takes" in found.title
