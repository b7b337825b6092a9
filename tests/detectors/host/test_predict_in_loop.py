"""HST003 predict-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US, Job, S
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import LOOP_LINE, PERIOD, STEPS, nothing, predicting, predicting_beside_a_step, train_loop

from stepscope.detectors.host.predict_in_loop import DETECTOR
from stepscope.wire.kinds import Flag, Kind

FIXTURES = Fixtures(
    firing=lambda: predicting(50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", LOOP_LINE + 3),),
        metrics=("overhead_ratio", "calls", "call_ns", "overhead_ns"),
        title=("model.predict", "55 ms a call", "50 ms of it Keras' own overhead"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="no-predict-in-loop",
    ),
    silent=lambda: predicting_beside_a_step(2),
    not_applicable=nothing,
    missing="steps",
    below=lambda: predicting(5 * MS - US),
    at=lambda: predicting(5 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_predict_of_a_whole_set_is_none() -> None:
    """A few long predict calls, whose time is the compiled function's, are what predict is for."""
    job = Job()
    job.loop("predict").every(10 * S, 8, dur=10 * S - MS, arg=100_000)
    job.execution("predict").every(PERIOD, 800, dur=PERIOD - MS, arg=1)
    assert "HST003" not in codes(job)


def test_prediction_inside_of_a_training_step_is_exposed_in_training() -> None:
    """A predict that is called in each step of training is found there, and training pays."""
    job = train_loop(20 * MS)
    job.call(Kind.APPLY, "Adam").every(PERIOD, STEPS, dur=MS, start=5 * MS)
    job.loop("predict", line=46).every(PERIOD, STEPS, dur=50 * MS, start=30 * MS, arg=1)
    (found,) = find(job)
    assert (found.code, found.introduced_stage, found.exposed_stage) == ("HST003", "prediction", "training")


def test_predict_in_a_loop_says_nothing_of_retraces() -> None:
    """What Keras makes anew in each call of predict belongs to that call."""
    job = predicting(60 * MS)
    for i in range(1, STEPS):
        job.trace(i * PERIOD + MS, 20 * MS, cause="new-function", owner="keras", function="predict_function")
    assert codes(job) == ["HST003"]


def test_predict_with_a_progress_bar_is_found() -> None:
    """Keras' own callbacks inside of predict (its progress bar) do not excuse it."""
    job = predicting(50 * MS)
    bar = job.callback("ProgbarLogger.on_predict_batch_end", own=False)
    bar.every(PERIOD, STEPS, dur=100 * US, start=40 * MS)
    assert [f.code for f in find(job)] == ["HST003"]


def test_fit_called_again_and_again_is_found() -> None:
    """Fit with Keras' own History in it, called for single batches, is mostly Keras' preparation."""
    job = Job()
    job.loop("fit").every(PERIOD, STEPS, dur=90 * MS)
    job.execution("train").every(PERIOD, STEPS, dur=10 * MS, start=50 * MS, arg=1)
    job.callback("History.on_epoch_end", own=False).every(PERIOD, STEPS, dur=30 * US, start=80 * MS)
    assert "HST003" in [f.code for f in find(job)]


def predicts_with_gaps(batches: int) -> Job:
    """Calls of predict on many batches of 10 ms each, of which only the first five of each call are recorded."""
    job = Job()
    loop, batch = job.loop("predict", line=LOOP_LINE), job.execution("predict")
    for call in range(20):
        at = call * (batches + 2) * 10 * MS
        loop.at(at, (batches + 1) * 10 * MS, arg=batches)
        for i in range(5):
            batch.at(at + (i + 1) * 10 * MS, 10 * MS - US, arg=1)
        job.gap(at + 60 * MS, (batches - 6) * 10 * MS, batches - 5)
        job.batch(at, role="predict", size=32, steps=batches)
    return job


def test_long_calls_that_all_hold_a_gap_have_steps() -> None:
    """Where each predict holds a gap, its batches are the steps; unobserved time is no overhead of Keras'."""
    job = predicts_with_gaps(60)
    steps = job.view().steps
    assert steps is not None
    assert (steps.kind, steps.steady_count > 20) == (Kind.EXECUTION, True)
    assert "HST003" not in [f.code for f in find(job)]


@pytest.mark.parametrize("batches", [1, 400])
def test_predict_on_many_batches_at_once_is_what_it_is_for(batches: int) -> None:
    """What Keras does around a call of hundreds of batches is not worth a call of one's own."""
    job = predicting(60 * MS)
    job.batch(0, role="predict", size=32, steps=batches)
    assert ("HST003" in [f.code for f in find(job)]) == (batches == 1)


@pytest.mark.parametrize(("calls", "found"), [(12, True), (2, False)])
def test_predictions_one_by_one_in_a_callback(calls: int, *, found: bool) -> None:
    """A callback that predicts example by example; one that predicts twice is as Keras is meant to be used."""
    job = train_loop(20 * MS)
    callback = job.call(Kind.CALLBACK, "Scores.on_epoch_end", role="callback", hook="on_epoch_end", own=True)
    callback.every(PERIOD, STEPS, dur=calls * 5 * MS + MS, start=21 * MS)
    for i in range(calls):
        job.loop("predict", line=46).every(
            PERIOD, STEPS, dur=5 * MS - US, start=21 * MS + i * 5 * MS, arg=1, flags=int(Flag.NESTED)
        )
    titles = [one.title for one in find(job) if one.code == "HST003"]
    assert [f"{calls} times in each" in title for title in titles] == [True] * found


def test_the_lower_end_is_what_the_fastest_calls_cost() -> None:
    """Keras does the same in each call: what half of the calls do without may be a wait, and is not sure to go."""
    job = Job()
    loop, batch = job.loop("predict", line=LOOP_LINE + 3), job.execution("predict")
    for i in range(STEPS):
        loop.at(i * PERIOD, (25 if i % 2 else 65) * MS, arg=1)
        batch.at(i * PERIOD + 10 * MS, 5 * MS, arg=1)
    (found,) = [one for one in find(job) if one.code == "HST003"]
    assert found.cost.ratio == pytest.approx(0.4, abs=0.02)
    assert found.cost.low == pytest.approx(0.2, abs=0.02)
