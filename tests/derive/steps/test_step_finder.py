"""Which calls are the steps, which of the steps are steady, and how many samples are in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import END, MS, NESTED, POOL, TRACED, US, Job, S

from stepscope.derive.steps import step_finder
from stepscope.wire.kinds import Kind

PERIOD = 100 * MS


def train_and(job: Job, count: int = 50) -> Job:
    """A custom loop's calls, 100 ms apart."""
    job.function().every(PERIOD, count, dur=80 * MS, start=5 * MS)
    return job


# ---- the anchor --------------------------------------------------------------------------------------------------


def test_explicit_steps_come_first() -> None:
    """Where the user marks steps, these are the steps, whatever else repeats."""
    job = train_and(Job())
    job.step().every(PERIOD, 50, dur=0)
    job.nexts().every(PERIOD, 50, dur=MS, start=MS)
    found = job.steps()
    assert (found.kind, found.title) == (Kind.STEP, "stepscope.step")


def test_few_long_explicit_steps_are_steps_already() -> None:
    """Of a live job the last step is not over, so its calls cover more of the time than the steps that are known."""
    job = Job()
    job.function("small").every(10 * US, 200_000, dur=5 * US)
    job.step().every(400 * MS, 4, dur=0)
    assert job.steps().title == "stepscope.step"


def test_keras_steps_come_before_what_is_inside_of_them() -> None:
    """Keras' train function is the step, not the functions that it or a callback calls."""
    job = Job()
    job.loop("fit").at(0, 50 * PERIOD)
    job.execution("train").every(PERIOD, 50, dur=80 * MS, arg=1)
    job.function("augment").every(PERIOD, 50, dur=10 * MS, start=85 * MS)
    found = job.steps()
    assert (found.kind, found.title) == (Kind.EXECUTION, "Keras fit")


def test_session_runs_are_steps() -> None:
    """A repeated Session.run is the step."""
    job = Job()
    job.call(Kind.SESSION_RUN, "train_op").every(PERIOD, 50, dur=80 * MS, arg=32)
    assert job.steps().title == "Session.run"
    assert set(job.steps().samples.tolist()) == {32}


def test_a_run_of_every_fiftieth_turn_is_not_the_step() -> None:
    """A branch that writes summaries comes first in the loop; its calls cover the same time as the steps."""
    job = Job()
    branch, plain = job.call(Kind.SESSION_RUN, "summaries"), job.call(Kind.SESSION_RUN, "train")
    for turn in range(500):
        (plain if turn % 50 else branch).at(turn * PERIOD, 80 * MS)
    assert len(job.steps()) == 490


def test_a_step_that_an_evaluation_follows_is_the_step() -> None:
    """Many batches of an evaluation after every few steps are more calls than steps, but not one at a time."""
    job = Job()
    train, evaluate = job.function("train_step"), job.function("eval_step")
    for turn in range(100):
        train.at(turn * S, 80 * MS)
        if turn % 4 == 3:
            for batch in range(40):
                evaluate.at(turn * S + 90 * MS + batch * 20 * MS, 18 * MS)
    assert job.steps().title == "tf.function train_step"


def test_a_function_comes_before_the_batches_that_feed_it() -> None:
    """In a custom loop the step is the call of the tf.function, not the pull of its batch."""
    job = train_and(Job())
    job.nexts().every(PERIOD, 50, dur=4 * MS)
    assert job.steps().title == "tf.function train_step"


def test_the_function_that_covers_the_job_is_the_step() -> None:
    """A warm-up function called often in a short phase is not the step of the long one."""
    job = Job()
    job.function("prepare", line=5).every(MS, 400, dur=MS // 2)
    job.function("train_step", line=10).every(PERIOD, 50, dur=80 * MS, start=S)
    assert job.steps().title == "tf.function train_step"


def test_two_functions_of_one_loop_make_one_step() -> None:
    """A GAN's two functions are called once a step each: a step is from one call of one of them to its next."""
    job = Job()
    job.function("train_discriminator", line=10).every(PERIOD, 50, dur=40 * MS)
    job.function("train_generator", line=20).every(PERIOD, 50, dur=40 * MS, start=45 * MS)
    found = job.steps()
    assert found.kind == Kind.FUNCTION
    assert set(found.durations[:-1].tolist()) == {PERIOD}


def test_a_warm_up_fit_does_not_hide_the_main_one() -> None:
    """Both fits of a program run the same steps; the pause between them is out."""
    job = Job()
    execution = job.execution("train")
    job.loop("fit", line=50).at(0, 10 * PERIOD)
    execution.every(PERIOD, 10, dur=80 * MS, arg=1)
    job.loop("fit", line=60).at(S * 30, 90 * PERIOD)
    execution.every(PERIOD, 90, dur=80 * MS, start=30 * S, arg=1)
    found = job.steps()
    assert len(found) == 100
    assert set(found.durations[found.steady].tolist()) == {PERIOD}
    assert found.steady_count == 97  # not the first, not the pause, not the last


def test_a_loop_of_predict_calls_is_steps_of_predict() -> None:
    """In an inference loop each call of predict is a step, and its samples are known."""
    job = Job()
    job.loop("predict").every(PERIOD, 50, dur=60 * MS, arg=4)
    job.execution("predict").every(PERIOD, 50, dur=5 * MS, start=30 * MS)
    found = job.steps()
    assert (found.kind, found.title) == (Kind.LOOP, "Keras predict")
    assert set(found.samples.tolist()) == {4}


def test_one_long_predict_is_steps_of_its_function() -> None:
    """A single predict over a large set has the batches of its function as steps."""
    job = Job()
    job.loop("predict").at(0, 50 * PERIOD)
    job.execution("predict").every(PERIOD, 50, dur=90 * MS, arg=1)
    assert job.steps().title == "Keras predict"
    assert job.steps().kind == Kind.EXECUTION


def test_names_of_the_same_function_count_together() -> None:
    """A function that is made anew in each step has many names, and is one step's call."""
    job = Job()
    for i in range(20):
        job.function().at(i * PERIOD, 80 * MS)
    assert len(job.steps()) == 20


def test_the_thread_of_the_steps_is_the_busy_one() -> None:
    """Steps are those of one thread; a helper thread that calls the same function now and then is left out."""
    job = train_and(Job())
    job.function().every(30 * MS, 5, dur=MS, thread=POOL)
    assert len(job.steps()) == 50
    assert job.steps().thread == 1


def test_the_end_of_an_iterator_is_no_step() -> None:
    """The pull that only says that there is no more makes no step."""
    job = Job()
    nexts = job.nexts()
    nexts.every(PERIOD, 20, dur=90 * MS)
    nexts.at(20 * PERIOD, MS, flags=END)
    assert len(job.steps()) == 20


@pytest.mark.parametrize(("calls", "found"), [(3, False), (4, True)])
def test_four_calls_are_a_loop(calls: int, found: bool) -> None:
    """Three calls are no loop, four are."""
    job = Job()
    job.function().every(PERIOD, calls, dur=80 * MS)
    assert (step_finder.find([job.worker()]) is not None) is found


def test_the_worker_that_trains_is_chosen() -> None:
    """Of several processes the one whose steps cover most time is the one that is explained."""
    helper = Job(pid=200)
    helper.function("decode").every(PERIOD, 5, dur=MS)
    found = step_finder.find([helper.worker(), train_and(Job(pid=300)).worker()])
    assert found is not None
    assert found.worker.info.pid == 300


# ---- which steps are steady --------------------------------------------------------------------------------------


def test_first_and_last_are_never_steady() -> None:
    """The first step is warm-up, and where the last one ends is not known."""
    steady = train_and(Job()).steps().steady.tolist()
    assert (steady[0], steady[-1], sum(steady)) == (False, False, 48)


def test_warm_up_ends_after_the_first_traces() -> None:
    """Steps up to the last early one with a first trace are warm-up."""
    job = Job()
    call = job.function()
    call.every(PERIOD, 100, dur=80 * MS)
    for i in (0, 3):
        job.trace(i * PERIOD + MS, 20 * MS, cause="first")
    assert job.steps().steady.tolist() == [False] * 4 + [True] * 95 + [False]


def test_a_late_first_trace_is_work() -> None:
    """A function that is traced first in the middle of the run does not turn half of it into warm-up."""
    job = Job()
    job.function().every(PERIOD, 100, dur=80 * MS)
    job.trace(50 * PERIOD + MS, 20 * MS, cause="first", function="other")
    assert job.steps().steady_count == 98


def test_slow_first_steps_are_warm_up() -> None:
    """An unbroken run of very slow steps at the start is warm-up."""
    job = Job()
    call = job.function()
    for i in range(3):
        call.at(i * S, 990 * MS)
    call.every(PERIOD, 97, dur=80 * MS, start=3 * S)
    assert job.steps().steady.tolist() == [False] * 3 + [True] * 96 + [False]


def test_retraces_stay_steady() -> None:
    """A function that is traced in every step has steady steps all the same."""
    job = Job()
    call = job.function()
    for i in range(50):
        call.at(i * PERIOD, 80 * MS, flags=TRACED)
        job.trace(i * PERIOD, 60 * MS, cause="python-value" if i else "first")
    assert job.steps().steady_count == 48


def test_a_function_made_anew_in_each_step_stays_steady() -> None:
    """First traces of ever new functions are retraces in disguise and are no warm-up."""
    job = Job()
    for i in range(50):
        job.function().at(i * PERIOD, 80 * MS, flags=TRACED)
        job.trace(i * PERIOD, 60 * MS, cause="new-function" if i else "first", function_key=i)
    assert job.steps().steady_count == 48


def evaluated(times: list[int], *, nested: bool = True) -> Job:
    """Keras' fit of 100 steps with evaluations of 2 s in some of them."""
    job = Job()
    execution = job.execution("train")
    callback, evaluate = job.callback("Watch.on_train_batch_end"), job.loop("evaluate")
    at = 0
    for i in range(100):
        execution.at(at, 80 * MS, arg=1)
        if i in times:
            callback.at(at + 85 * MS, 2 * S + 2 * MS)
            evaluate.at(at + 86 * MS, 2 * S, flags=NESTED if nested else 0)
            at += 2 * S
        at += PERIOD
    job.loop("fit").at(0, at)
    return job


def test_recurring_long_gaps_stay() -> None:
    """An evaluation inside of a callback every ten steps is part of the work."""
    job = evaluated(list(range(9, 95, 10)))
    found = job.steps()
    assert found.steady_count == 98
    assert found.durations[found.steady].max() > 2 * S


def test_a_single_pause_between_two_loops_is_out() -> None:
    """The time between two calls of fit is not a step's."""
    job = Job()
    execution, fit = job.execution("train"), job.loop("fit")
    for k in range(2):
        at = k * 60 * S
        fit.at(at, 50 * PERIOD)
        execution.every(PERIOD, 50, dur=80 * MS, start=at, arg=1)
    found = job.steps()
    assert found.steady_count == 97
    assert int(found.durations[found.steady].max()) == PERIOD


def test_recurring_pauses_between_loops_stay() -> None:
    """Where fit is called again and again, what happens in between belongs to the work."""
    job = Job()
    execution, fit = job.execution("train"), job.loop("fit")
    for k in range(10):
        at = k * 2 * S
        fit.at(at, 10 * PERIOD)
        execution.every(PERIOD, 10, dur=80 * MS, start=at, arg=1)
    found = job.steps()
    assert found.steady_count == 98
    assert found.steady_ns == pytest.approx(18.9 * S - PERIOD, rel=0.02)


def test_steady_windows_are_the_steady_steps() -> None:
    """Windows, counts and wall time agree."""
    found = evaluated([30]).steps()
    lo, hi = found.windows
    assert len(lo) == found.steady_count
    assert int((hi - lo).sum()) == found.steady_ns
    assert (lo[1:] >= hi[:-1]).all()


@given(
    durations=st.lists(st.integers(1, 50 * MS), min_size=4, max_size=60),
    traces=st.lists(st.integers(0, 59), max_size=5),
    loops=st.lists(st.tuples(st.integers(0, 2 * S), st.integers(0, S)), max_size=5),
)
def test_steps_tile_the_time(durations: list[int], traces: list[int], loops: list[tuple[int, int]]) -> None:
    """Any series of calls gives steps that tile their time, and never a steady last one."""
    job = Job()
    call, fit = job.function(), job.loop("fit")
    at = 0
    for i, duration in enumerate(durations):
        call.at(at, duration, flags=TRACED if i in traces else 0)
        if i in traces:
            job.trace(at, duration // 2, cause="first")
        at += duration + US
    for start, dur in loops:
        fit.at(start, dur)
    found = step_finder.find([job.worker()])
    assert found is not None
    if found.kind == Kind.FUNCTION:
        assert (found.ends[:-1] == found.starts[1:]).all()
        assert len(found) == len(durations)
    assert not found.steady[-1]
    assert (found.durations >= 0).all()
    assert not (found.recurring & ~found.steady).any()


# ---- samples -----------------------------------------------------------------------------------------------------


def test_samples_of_fit_include_the_partial_last_batch() -> None:
    """Samples per step are the epoch's samples over its batches: 100 samples in 4 batches of 32 are 25 each."""
    job = Job()
    job.loop("fit").at(0, 40 * PERIOD)
    job.batch(0, size=32, samples=100, steps=4)
    job.execution("train").every(PERIOD, 40, dur=80 * MS, arg=1)
    assert set(job.steps().samples.tolist()) == {25}


def test_samples_of_a_fit_of_unknown_length_are_batches() -> None:
    """Where the epoch's length is unknown, the batch size counts."""
    job = Job()
    job.batch(0, size=32)
    job.execution("train").every(PERIOD, 40, dur=80 * MS, arg=1)
    assert set(job.steps().samples.tolist()) == {32}


def test_samples_of_several_batches_per_execution() -> None:
    """With steps_per_execution an execution holds so many batches."""
    job = Job()
    job.batch(0, size=32)
    job.execution("train").every(PERIOD, 40, dur=80 * MS, arg=4)
    assert set(job.steps().samples.tolist()) == {128}


def test_a_second_fit_may_have_another_batch_size() -> None:
    """Each loop's steps have that loop's batch size."""
    job = Job()
    job.batch(0, size=16)
    job.batch(20 * PERIOD, size=64)
    job.execution("train").every(PERIOD, 40, dur=80 * MS, arg=1)
    assert job.steps().samples.tolist() == [16] * 20 + [64] * 20


def test_validation_batches_do_not_count() -> None:
    """The batch size of an evaluation is not the training's."""
    job = Job()
    job.batch(0, size=16)
    job.batch(5 * PERIOD, role="test", size=512)
    job.execution("train").every(PERIOD, 40, dur=80 * MS, arg=1)
    assert set(job.steps().samples.tolist()) == {16}


def test_samples_looked_at_now_and_then_hold_until_the_next_look() -> None:
    """A function's argument is not looked at in every call: what was seen last holds."""
    job = Job()
    call = job.function()
    for i in range(40):
        call.at(i * PERIOD, 80 * MS, arg={3: 32, 20: 8}.get(i, 0))
    assert job.steps().samples.tolist() == [32] * 20 + [8] * 20


def test_samples_from_the_batches_that_a_step_pulls() -> None:
    """Where no argument tells, the elements pulled in the step do: two pulls of 16 are 32 samples."""
    job = Job()
    iterator = job.iterator(batch=16)
    job.step().every(PERIOD, 40, dur=0)
    nexts = job.nexts()
    nexts.every(PERIOD, 40, dur=MS, start=MS, arg=iterator)
    nexts.every(PERIOD, 40, dur=MS, start=5 * MS, arg=iterator)
    assert set(job.steps().samples.tolist()) == {32}


def test_unknown_samples_are_zero() -> None:
    """Where nothing tells the samples, none are invented."""
    assert set(train_and(Job()).steps().samples.tolist()) == {0}
