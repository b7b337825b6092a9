"""Gaps: what happened while wrappers were detached is set apart, and steps that were only counted are counted."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.counted_steps import AGAIN, COUNTED, PERIOD, WINDOW, with_gap
from tests.derive.sessions import MS, US, Job

from stepscope.derive.steps import gaps
from stepscope.store.gaps import split
from stepscope.wire.kinds import Flag, Kind


def test_steps_of_a_gap_are_counted() -> None:
    """All steps are counted, those of the gap included; only observed ones have a duration."""
    found = with_gap().steps()
    assert (found.count, len(found)) == (2 * WINDOW + COUNTED, 2 * WINDOW)
    assert int(found.unobserved.sum()) == 1
    assert set(found.durations[found.steady].tolist()) == {PERIOD}


def test_a_gap_does_not_uncover_the_anchor() -> None:
    """A custom loop that is unobserved most of the time is still the job's loop, not the function of a short phase."""
    job = with_gap(Kind.FUNCTION)
    job.function("evaluate", line=90).every(3 * MS, 60, dur=2 * MS, start=AGAIN + WINDOW * PERIOD)
    found = job.steps()
    assert found.title == "tf.function train_step"
    assert found.count == COUNTED + 2 * WINDOW


def test_what_happened_in_a_gap_is_left_out() -> None:
    """Samples, counts and Python functions of a gap are not divided by the steps of the windows; loops stay."""
    job = with_gap()
    middle = AGAIN // 2
    job.samples([middle, AGAIN + 10 * PERIOD + US], dur=25 * MS)
    job.python("generator", "read").every(PERIOD, 2 * WINDOW + COUNTED, dur=500 * US, thread=2)
    view = job.view()
    assert view.worker is not None
    records = view.worker.records
    kinds = {kind: int((records.kind == kind).sum()) for kind in (Kind.SAMPLE, Kind.LOOP, Kind.REST)}
    assert kinds == {Kind.SAMPLE: 1, Kind.LOOP: 1, Kind.REST: 0}
    assert len(view.worker.gaps) == 2
    everything = view.worker.with_gaps()
    assert int((everything.kind == Kind.SAMPLE).sum()) == 2
    assert len(everything) == len(job.table()) - 2
    assert (np.diff(everything.start_ns) >= 0).all()
    pulled = records.start_ns[records.kind == Kind.PYFUNC]
    assert 2 * WINDOW <= len(pulled) <= 2 * WINDOW + 2
    assert view.pipeline is not None
    (function,) = view.pipeline.functions
    assert view.steps is not None
    assert abs(function.total_ns / view.steps.steady_count - 500 * US) < 20 * US


def test_records_without_gaps_are_as_they_were() -> None:
    """No copy is made of what needs none."""
    stored = Job().table()
    records, detached, in_gaps = split(stored)
    assert records is stored
    assert (len(detached), len(in_gaps)) == (0, 0)
    worker = Job().worker()
    assert worker.with_gaps() is worker.records


def test_the_span_of_the_steps_holds_those_that_were_only_counted() -> None:
    """What is sampled by time (CPU, threads) is looked at from the first steady step to the end of a last gap."""
    job = Job()
    job.loop().at(0, (WINDOW + COUNTED) * PERIOD)
    job.execution().every(PERIOD, WINDOW, dur=MS, arg=1)
    job.gap((WINDOW - 1) * PERIOD + MS + 1, COUNTED * PERIOD, COUNTED, Kind.EXECUTION)
    found = job.steps()
    assert found.span == (int(found.starts[found.steady][0]), (WINDOW - 1 + COUNTED) * PERIOD + MS + 1)
    whole = with_gap().steps()
    assert whole.span[1] == int(whole.windows[1][-1])


def test_a_loop_after_a_fit_keeps_its_calls() -> None:
    """Calls of a tf.function that were counted in a gap are not those of the Keras fit before it."""
    job = Job()
    job.loop().at(0, WINDOW * PERIOD)
    job.execution().every(PERIOD, WINDOW, dur=MS, arg=1)
    start = (WINDOW + 1) * PERIOD
    job.function().every(PERIOD, 2 * WINDOW, dur=MS, start=start)
    job.gap(start + (2 * WINDOW - 1) * PERIOD + MS + 1, COUNTED * PERIOD, COUNTED, Kind.FUNCTION)
    job.function().every(PERIOD, WINDOW, dur=MS, start=start + (2 * WINDOW + COUNTED) * PERIOD)
    worker = job.worker()
    records = worker.records
    executions = np.flatnonzero(records.kind == Kind.EXECUTION)
    assert gaps.share(records, worker.gaps, Kind.EXECUTION, executions) == 0
    functions = np.flatnonzero(records.kind == Kind.FUNCTION)
    assert gaps.share(records, worker.gaps, Kind.FUNCTION, functions) == COUNTED


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_steps_are_counted_by_what_goes_with_them(replicas: int) -> None:
    """A function that pulls a batch for each replica: where pulls were counted, they tell how many steps there were."""
    job = Job()
    for start in (0, AGAIN):
        job.function().every(PERIOD, WINDOW, dur=MS, start=start)
        for replica in range(replicas):
            job.nexts().every(PERIOD, WINDOW, dur=US, start=start + MS + 2 * US * (1 + replica))
    begin = WINDOW * PERIOD - US
    job.gap(begin, AGAIN - begin - 1, COUNTED * replicas, Kind.NEXT)
    found = job.steps()
    assert found.title == "tf.function train_step"
    assert abs(found.count - 2 * WINDOW - COUNTED) <= COUNTED // 50
    worker = job.worker()
    updates = np.flatnonzero(worker.records.kind == Kind.FUNCTION)
    assert gaps.share(worker.records, worker.gaps, Kind.EXECUTION, updates) == 0


@pytest.mark.parametrize("steps", [0, 100, COUNTED])
def test_optimizers_steps_are_counted_themselves(steps: int) -> None:
    """In a gap that evaluates, too, batches are taken: those make no steps where PyTorch's hook has counted none."""
    job = Job()
    for start in (0, AGAIN):
        job.call(Kind.APPLY, "optimizer step", role="optimizer").every(PERIOD, WINDOW, dur=0, start=start + MS)
        job.nexts().every(PERIOD, WINDOW, dur=US, start=start)
    begin = WINDOW * PERIOD - US
    job.gap(begin, AGAIN - begin - 1, 3 * COUNTED, Kind.NEXT)
    job.gap(begin, AGAIN - begin - 1, steps, Kind.APPLY)
    found = job.steps()
    assert (found.kind, found.count) == (Kind.APPLY, 2 * WINDOW + steps)


@pytest.mark.parametrize("function", ["fit", "evaluate"])
def test_steps_are_seen_where_each_of_many_calls_holds_a_gap(function: str) -> None:
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
        job.gap(start + (batches // 4 + 9) * PERIOD - US, 20 * PERIOD, 3 * batches // 4, Kind.EXECUTION)
    found = job.steps()
    assert found.title == f"Keras {function}"
    assert found.kind == Kind.EXECUTION
    assert found.count == fits * batches
    assert found.steady_count > fits * batches // 5


def test_where_each_long_training_step_holds_a_gap_other_calls_are_steps() -> None:
    """An agent predicts 24 times for each fit of one step: each of its steps holds a gap, and yet there are steps."""
    job = Job()
    for turn in range(8):
        at = turn * 3_000 * MS
        job.loop("predict").every(100 * MS, 24, dur=90 * MS, start=at, arg=1)
        job.execution("predict").every(100 * MS, 24, dur=2 * MS, start=at + 80 * MS)
        job.gap(at + 1_010 * MS, 380 * MS, 4, Kind.FUNCTION)
        job.loop("fit").at(at + 2_500 * MS, 300 * MS)
        job.execution("train").at(at + 2_600 * MS, 150 * MS, arg=1)
    found = job.steps()
    assert (found.kind, found.title) == (Kind.LOOP, "Keras predict")
    assert found.steady_count > 100
    assert all(one is not found.candidate for rule in found.why for one in rule.candidates)


def test_evaluations_of_a_fit_are_no_steps_where_its_steps_hold_gaps() -> None:
    """What belongs to each fit whatever it takes stays a part of it."""
    job = Job()
    job.loop("fit").at(0, 24_000 * MS)
    for turn in range(8):
        at = turn * 3_000 * MS
        job.execution("train").at(at + 100 * MS, 150 * MS, arg=1)
        job.gap(at + 300 * MS, 600 * MS, 4, Kind.FUNCTION)
        job.loop("evaluate").every(100 * MS, 12, dur=90 * MS, start=at + 1_000 * MS, arg=1, flags=Flag.NESTED)
        job.execution("test").every(100 * MS, 12, dur=2 * MS, start=at + 1_080 * MS)
    assert job.steps().candidate.name.role not in {"test", "evaluate"}


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("beside", [Kind.EXECUTION, Kind.NEXT])
def test_updates_that_a_gap_recorded_are_its_steps(every: int, beside: Kind) -> None:
    """Optimizers of PyTorch go on recording: that is their number, whatever else is counted, and however many records
    were dropped.
    """
    job = Job()
    update = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file="/job/train.py", call_line=12)
    for start in (0, AGAIN):
        update.every(PERIOD, WINDOW, dur=0, start=start)
        job.nexts().every(PERIOD, WINDOW, dur=US, start=start + US)
    begin = (WINDOW - 1) * PERIOD + MS
    job.gap(begin, AGAIN - begin - 1, 3 * COUNTED if beside == Kind.NEXT else 0, beside)
    update.every(every * PERIOD, COUNTED // every, dur=0, start=WINDOW * PERIOD)
    if every > 1:
        update.counted(WINDOW * PERIOD + US, calls=COUNTED - COUNTED // every, total=0)
    found = job.steps()
    assert found.kind == Kind.APPLY
    assert found.count == COUNTED + 2 * WINDOW
    assert found.span[1] == int(found.windows[1][-1])
