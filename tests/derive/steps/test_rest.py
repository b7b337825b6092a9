"""Rests: what happened while wrappers were detached is left out, and steps that were only counted are counted."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, US, Job

from stepscope.derive.steps import rest
from stepscope.wire.kinds import Kind

PERIOD = 2 * MS
WINDOW = 100
"""Steps recorded before and after the rest."""
RESTED = 1000
"""Steps in it."""
AGAIN = (WINDOW + RESTED) * PERIOD


def rested(kind: Kind = Kind.EXECUTION) -> Job:
    """Steps of 2 ms, most of them in a rest that was told in two parts."""
    job = Job()
    call = job.execution() if kind == Kind.EXECUTION else job.function()
    if kind == Kind.EXECUTION:
        job.loop().at(0, (2 * WINDOW + RESTED) * PERIOD)
    for start in (0, AGAIN):
        call.every(PERIOD, WINDOW, dur=MS, start=start, arg=1)
    half = RESTED // 2 * PERIOD
    job.rest((WINDOW - 1) * PERIOD + MS + 1, half, RESTED // 2, kind)
    job.rest((WINDOW - 1) * PERIOD + MS + 1 + half, AGAIN - (WINDOW - 1) * PERIOD - MS - 2 - half, RESTED // 2, kind)
    return job


def test_steps_of_a_rest_are_counted() -> None:
    """All steps are told, those of the rest included; only recorded ones have a duration."""
    found = rested().steps()
    assert (found.count, len(found)) == (2 * WINDOW + RESTED, 2 * WINDOW)
    assert int(found.rested.sum()) == 1
    assert set(found.durations[found.steady].tolist()) == {PERIOD}


def test_a_rest_does_not_uncover_the_anchor() -> None:
    """A custom loop that rests most of the time is still the job's loop, not the function of a short phase."""
    job = rested(Kind.FUNCTION)
    job.function("evaluate", line=90).every(3 * MS, 60, dur=2 * MS, start=AGAIN + WINDOW * PERIOD)
    found = job.steps()
    assert found.title == "tf.function train_step"
    assert found.count == RESTED + 2 * WINDOW


def test_what_happened_in_a_rest_is_left_out() -> None:
    """Samples, counts and Python functions of a rest are not divided by the steps of the windows; loops stay."""
    job = rested()
    middle = AGAIN // 2
    job.samples([middle, AGAIN + 10 * PERIOD + US], dur=25 * MS)
    job.python("generator", "read").every(PERIOD, 2 * WINDOW + RESTED, dur=500 * US, thread=2)
    view = job.view()
    assert view.worker is not None
    records = view.worker.records
    kinds = {kind: int((records.kind == kind).sum()) for kind in (Kind.SAMPLE, Kind.LOOP, Kind.REST)}
    assert kinds == {Kind.SAMPLE: 1, Kind.LOOP: 1, Kind.REST: 2}
    pulled = records.start_ns[records.kind == Kind.PYFUNC]
    assert 2 * WINDOW <= len(pulled) <= 2 * WINDOW + 2
    assert view.pipeline is not None
    (function,) = view.pipeline.functions
    assert view.steps is not None
    assert abs(function.total_ns / view.steps.steady_count - 500 * US) < 20 * US


def test_a_session_without_rests_is_as_it_was() -> None:
    """No copy is made of what needs none."""
    worker = Job().worker()
    assert rest.attached(worker) is worker


def test_the_span_of_the_steps_holds_those_that_were_only_counted() -> None:
    """What is sampled by time (CPU, threads) is looked at from the first steady step to the end of a last rest."""
    job = Job()
    job.loop().at(0, (WINDOW + RESTED) * PERIOD)
    job.execution().every(PERIOD, WINDOW, dur=MS, arg=1)
    job.rest((WINDOW - 1) * PERIOD + MS + 1, RESTED * PERIOD, RESTED, Kind.EXECUTION)
    found = job.steps()
    assert found.span == (int(found.starts[found.steady][0]), (WINDOW - 1 + RESTED) * PERIOD + MS + 1)
    whole = rested().steps()
    assert whole.span[1] == int(whole.windows[1][-1])


def test_a_loop_after_a_fit_keeps_its_calls() -> None:
    """Calls of a tf.function that were counted in a rest are not those of the Keras fit before it."""
    job = Job()
    job.loop().at(0, WINDOW * PERIOD)
    job.execution().every(PERIOD, WINDOW, dur=MS, arg=1)
    start = (WINDOW + 1) * PERIOD
    job.function().every(PERIOD, 2 * WINDOW, dur=MS, start=start)
    job.rest(start + (2 * WINDOW - 1) * PERIOD + MS + 1, RESTED * PERIOD, RESTED, Kind.FUNCTION)
    job.function().every(PERIOD, WINDOW, dur=MS, start=start + (2 * WINDOW + RESTED) * PERIOD)
    records = job.table()
    executions = np.flatnonzero(records.kind == Kind.EXECUTION)
    assert rest.share(records, Kind.EXECUTION, executions) == 0
    assert rest.share(records, Kind.FUNCTION, np.flatnonzero(records.kind == Kind.FUNCTION)) == RESTED


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_steps_are_counted_by_what_goes_with_them(replicas: int) -> None:
    """A function that pulls a batch for each replica: where pulls were counted, they tell how many steps there were."""
    job = Job()
    for start in (0, AGAIN):
        job.function().every(PERIOD, WINDOW, dur=MS, start=start)
        for replica in range(replicas):
            job.nexts().every(PERIOD, WINDOW, dur=US, start=start + MS + 2 * US * (1 + replica))
    begin = WINDOW * PERIOD - US
    job.rest(begin, AGAIN - begin - 1, RESTED * replicas, Kind.NEXT)
    found = job.steps()
    assert found.title == "tf.function train_step"
    assert abs(found.count - 2 * WINDOW - RESTED) <= RESTED // 50
    updates = np.flatnonzero(job.table().kind == Kind.FUNCTION)
    assert rest.share(job.table(), Kind.EXECUTION, updates) == 0


@pytest.mark.parametrize("function", ["fit", "evaluate"])
def test_steps_are_seen_where_each_of_many_calls_holds_a_rest(function: str) -> None:
    """Short fits in a loop: the first one traces for a long time, so that its steps cover less than the fits do."""
    job, batches, fits = Job(), 64, 30
    loop, call = job.loop(function), job.execution({"fit": "train", "evaluate": "test"}[function])
    call.at(10 * MS, 1)
    traced = 2_000 * MS
    loop.at(0, traced + batches * PERIOD)
    call.every(PERIOD, batches - 1, dur=MS, start=traced, arg=1)
    for fit in range(1, fits):
        start = traced + fit * (batches + 16) * PERIOD
        loop.at(start, (batches + 10) * PERIOD)
        call.every(PERIOD, batches // 4, dur=MS, start=start + 9 * PERIOD, arg=1)
        job.rest(start + (batches // 4 + 9) * PERIOD - US, 20 * PERIOD, 3 * batches // 4, Kind.EXECUTION)
    found = job.steps()
    assert found.title == f"Keras {function}"
    assert found.kind == Kind.EXECUTION
    assert found.count == fits * batches
    assert found.steady_count > fits * batches // 5
