"""Evaluations of a fit: no steps of their own, and as much of the steady time as of the whole run."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Job, node

from stepscope.derive.input import pipeline
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import evaluations, step_finder, steps
from stepscope.wire.kinds import Flag, Kind

TRAIN, TEST = 2 * MS, MS
BATCHES, EVALUATED = 100, 800
EPOCH = BATCHES * TRAIN + EVALUATED * TEST


def fit(epochs: int, *, gaps_from: float = 0.0, samples: int = 0) -> Job:
    """A fit that trains 100 batches of 2 ms and evaluates 800 of 1 ms in each epoch, unobserved after some epochs."""
    job = Job()
    job.loop().at(0, epochs * EPOCH, arg=samples)
    train, test, evaluate = job.execution(), job.execution("test"), job.loop("evaluate")
    quiet = round(gaps_from * EPOCH) if gaps_from else epochs * EPOCH
    for epoch in range(epochs):
        begin = epoch * EPOCH
        evaluated = begin + BATCHES * TRAIN
        evaluate.at(evaluated, EVALUATED * TEST, flags=Flag.NESTED)
        for at in range(begin, evaluated, TRAIN):
            if at < quiet:
                train.at(at, TRAIN - 1, arg=1)
        for at in range(evaluated, begin + EPOCH, TEST):
            if at < quiet:
                test.at(at, TEST - 1, arg=1)
    for at in range(quiet, epochs * EPOCH, 250 * MS):
        until = min(at + 250 * MS, epochs * EPOCH)
        job.gap(at, until - at, calls(at, until), Kind.EXECUTION)
    return job


def calls(begin: int, end: int) -> int:
    """Executions in a part of the fit."""
    times = np.arange(begin, end, MS)
    phase = times % EPOCH
    return int(((phase >= BATCHES * TRAIN) | (phase % TRAIN == 0)).sum())


def found(job: Job) -> steps.Steps:
    """The steps."""
    made = step_finder.find(job.session().workers)
    assert made is not None
    return made


def evaluated_ratio(made: steps.Steps) -> float:
    """Share of the steady time in evaluations."""
    inside = intervals.clip(evaluations.loops(made), made.windows)
    return intervals.total(inside) / made.steady_ns


@pytest.mark.parametrize("gaps_from", [0.0, 1.1, 2.05])
def test_training_steps_are_the_steps_however_long_the_evaluations_take(gaps_from: float) -> None:
    """Four fifths of the time are evaluation; its loop covers more than the training steps between gaps do."""
    made = found(fit(8, gaps_from=gaps_from))
    assert made.title == "Keras fit"
    assert evaluated_ratio(made) == pytest.approx(0.8, abs=0.1)


def test_calls_in_gaps_are_told_apart_by_the_loop_that_they_ran_in() -> None:
    """Executions of evaluations are counted with those of training; their loops are on record."""
    made = found(fit(8, gaps_from=1.1))
    assert made.count == pytest.approx(8 * BATCHES, rel=0.03)


def test_a_fit_that_is_over_knows_how_many_samples_it_trained_on() -> None:
    """Then nothing needs to be estimated."""
    job = fit(8, gaps_from=1.1, samples=8 * BATCHES * 64)
    job.batch(0, size=64, samples=BATCHES * 64, steps=BATCHES)
    made = found(job)
    assert made.count == 8 * BATCHES
    assert evaluated_ratio(made) == pytest.approx(0.8, abs=0.02)


def test_a_fit_with_a_smaller_last_batch_has_no_more_steps_than_were_counted() -> None:
    """Samples over the mean batch would give more steps: the mean of 31.25 samples is known as 31."""
    job, period = Job(), 50 * MS
    job.loop().at(0, 320 * period, arg=10_000)
    job.execution().every(period, 100, dur=40 * MS, arg=1)
    for part in range(11):
        job.gap((100 + 20 * part) * period, 20 * period, 20, Kind.EXECUTION)
    job.batch(0, size=32, samples=1000, steps=32)
    assert found(job).count == 320


def test_steps_still_tile_the_time() -> None:
    """Parts of gaps that count as steady are cut out of unobserved steps."""
    made = found(fit(8, gaps_from=1.1))
    assert np.array_equal(made.ends[:-1], made.starts[1:])
    assert (np.diff(made.starts) > 0).all()
    assert not (made.steady & made.unobserved).any()
    assert {len(column) for column in (made.ends, made.call_ends, made.samples, made.recurring)} == {len(made)}


def test_evaluations_after_the_fit_are_steps() -> None:
    """A fit before does not make them its own."""
    job = fit(1)
    evaluate, test = job.loop("evaluate"), job.execution("test")
    for i in range(20):
        evaluate.at(2 * EPOCH + i * EPOCH, EPOCH - MS)
        test.at(2 * EPOCH + i * EPOCH + MS, EPOCH - 3 * MS)
    assert found(job).title == "Keras evaluate"


def test_validation_between_two_batches_is_no_input_wait() -> None:
    """Steps that hold an evaluation of the fit are left out of tf.data's account: nobody waited for a batch then."""
    job = Job()
    job.loop().at(0, 10_000 * MS)
    job.execution().every(100 * MS, 100, dur=90 * MS, arg=1)
    nodes = [node(1, "Map", 2, elements=61, busy=61 * 20 * MS), node(2, "Range", elements=61)]
    job.model(job.iterator(), 6_050 * MS, nodes, [80_000] * 60)
    job.loop("evaluate").at(4_091 * MS, 8 * MS, flags=Flag.NESTED)
    (window,) = pipeline.build(job.steps()).windows
    assert (window.start_ns, window.end_ns, window.executions) == (4_100 * MS, 6_000 * MS, 19)
    assert window.wait_ns == 19 * 20 * MS


@pytest.mark.parametrize("beside", ["evaluate", "predict"])
def test_fits_beside_other_calls_know_how_many_steps_they_made(beside: str) -> None:
    """What was counted in gaps belongs to both, and a predict's function does not count itself: samples tell."""
    job, rounds = Job(), 40
    call = job.execution({"evaluate": "test"}.get(beside, beside))
    train, fit_of, other = job.execution(), job.loop(), job.loop(beside)
    for turn in range(rounds):
        start, batches = turn * 100 * MS, 8 + turn % 5
        fit_of.at(start, 50 * MS, arg=32 * batches)
        other.at(start + 50 * MS, 40 * MS, arg=32 * 16)
        if turn % 4 == 0:
            train.every(TRAIN, batches, dur=MS, start=start + 20 * MS, arg=1)
            call.every(TRAIN, 16, dur=MS, start=start + 52 * MS, arg=1)
        elif turn % 4 == 1:
            job.gap(start - 5 * MS, 300 * MS, 30, Kind.EXECUTION)
    job.batch(0, size=32, samples=32 * 8, steps=8)
    made = found(job)
    assert made.title == "Keras fit"
    assert made.count == sum(8 + turn % 5 for turn in range(rounds))


def test_a_call_of_train_on_batch_is_a_step_each() -> None:
    """Where the compiled function is detached, the calls that hold one step each say how many there were."""
    job = Job()
    loop, execution = job.loop("train_on_batch"), job.execution("train")
    for turn in range(100):
        loop.at(turn * 100 * MS, 80 * MS, arg=32)
        if not 40 <= turn < 80:
            execution.at(turn * 100 * MS + 10 * MS, 60 * MS, arg=1)
    job.gap(4000 * MS, 4000 * MS, 7, Kind.EXECUTION)
    assert job.view().steps is not None
    assert job.steps().count == 100


def test_few_calls_of_train_on_batch_are_counted_too() -> None:
    """Where no step was observed as a whole, the calls that hold one each still say how many there were."""
    job = Job()
    loop, execution = job.loop("train_on_batch"), job.execution("train")
    for turn in range(8):
        loop.at(turn * 100 * MS, 80 * MS, arg=32)
        if not turn % 2:
            execution.at(turn * 100 * MS + 10 * MS, 60 * MS, arg=1)
            job.gap(turn * 100 * MS + 75 * MS, 110 * MS, 3, Kind.EXECUTION)
    assert job.steps().count == 8
