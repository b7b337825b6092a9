"""Who makes steps: trainings, evaluations and predictions, each with its count, whatever threads they run on."""

from __future__ import annotations

import pytest
from tests.derive.sessions import CWD, MS, SCRIPT, Call, Job, S

from stepscope.derive.steps.choice import RULES
from stepscope.diagnosis import analyze
from stepscope.model.log.events import ThreadSeen
from stepscope.model.report.report import SessionSummary
from stepscope.wire.kinds import Kind

FIRST_WORKER = 10
"""Ids of threads that the program starts."""


def summary(job: Job) -> SessionSummary:
    """The report's summary of a job."""
    return analyze.report_of(job.session()).session


def made(job: Job) -> list[tuple[str, int, bool]]:
    """(kind, count, main) of all makers."""
    return [(one.kind, one.count, one.main) for one in summary(job).step_makers]


def enqueues(job: Job, *, role: str = "", line: int = 0) -> Call:
    """Runs that fill a queue, 20 to a step."""
    place = {"call_file": SCRIPT, "call_line": line} if line else {}
    return job.call(Kind.SESSION_RUN, "queue_enqueue", role=role, **place)


@pytest.mark.parametrize("of_user", [False, True])
def test_runs_that_fill_a_queue_are_no_steps(of_user: bool) -> None:
    """Neither runs on a library's own thread nor the user's own enqueue runs are steps, however many there are."""
    job = Job()
    train = job.call(Kind.SESSION_RUN, "train", call_file=SCRIPT, call_line=20)
    train.every(60 * MS, 100, dur=55 * MS)
    fills = enqueues(job, role="enqueue", line=7) if of_user else enqueues(job)
    fills.every(3 * MS, 2100, dur=2 * MS, thread=FIRST_WORKER)
    found = job.steps()
    assert len(found) == 100
    assert [left.rule for left in found.why][:1] == ["queues"]
    assert made(job) == [("step", 100, True)]


def test_a_job_that_has_only_filled_its_queue_makes_no_steps_yet() -> None:
    """While a queue is filled before the first step, nothing is taken for the step."""
    job = Job()
    enqueues(job, role="enqueue", line=7).every(3 * MS, 500, dur=2 * MS)
    assert summary(job).steps == 0


def test_a_thread_for_each_request_is_one_maker() -> None:
    """Sixty calls of predict at one line, each on a thread that ends with it, are sixty steps of one kind."""
    job = Job()
    predict, execution = job.loop("predict", line=12), job.execution("predict")
    for number in range(60):
        thread = FIRST_WORKER + number
        job.event(ThreadSeen(id=thread))
        predict.at(number * 100 * MS, 80 * MS, arg=16, thread=thread)
        execution.at(number * 100 * MS + 40 * MS, 30 * MS, arg=1, thread=thread)
    told = summary(job)
    assert told.steps == 60
    assert told.throughput.steps_per_s == pytest.approx(10)
    (maker,) = told.step_makers
    assert (maker.kind, maker.count) == ("prediction", 60)
    assert maker.samples_per_s == pytest.approx(160)
    assert maker.place is not None
    assert (maker.place.file, maker.place.line) == (SCRIPT.removeprefix(CWD + "/"), 12)


def test_requests_at_the_same_time_are_all_counted() -> None:
    """Two requests at a time, each on its own thread: all of them are steps, and the rate is that of both."""
    job = Job()
    predict = job.loop("predict", line=12)
    for number in range(60):
        for lane in range(2):
            thread = FIRST_WORKER + 2 * number + lane
            job.event(ThreadSeen(id=thread))
            predict.at(number * 100 * MS + lane * 10 * MS, 80 * MS, thread=thread)
    told = summary(job)
    assert told.steps == 120
    assert told.throughput.steps_per_s == pytest.approx(20, rel=0.02)
    assert [(one.kind, one.count, one.threads) for one in told.step_makers] == [("prediction", 120, 2)]


def test_threads_of_a_pool_are_one_maker() -> None:
    """Threads that stay and predict at one place are one maker with all of their calls."""
    job = Job()
    predict = job.loop("predict", line=12)
    for thread in range(3):
        predict.every(100 * MS, 40, dur=90 * MS, start=thread * MS, thread=FIRST_WORKER + thread)
    assert [(one.kind, one.count, one.threads) for one in summary(job).step_makers] == [("prediction", 120, 3)]


def test_threads_that_train_alike_are_a_maker_each() -> None:
    """Two trainers of 50 steps: two makers, and the job's steps and samples are those of both."""
    job = Job()
    fit, execution = job.loop("fit"), job.execution("train")
    job.batch(0, size=32)
    for thread in range(2):
        fit.at(0, 5 * S, thread=FIRST_WORKER + thread)
        execution.every(100 * MS, 50, dur=80 * MS, arg=1, thread=FIRST_WORKER + thread)
    told = summary(job)
    assert [(one.kind, one.count, one.main) for one in told.step_makers] == [("training", 50, True)] * 2
    assert told.steps == 100
    assert told.throughput.steps_per_s == pytest.approx(20, rel=0.02)
    assert told.throughput.samples_per_s == pytest.approx(640, rel=0.02)


def reinforced(*, fit_ms: int) -> Job:
    """Three predictions for each fit of one batch; the first twenty predictions come before any fit."""
    job = Job()
    predict, predicts = job.loop("predict", line=12), job.execution("predict")
    fit, trains = job.loop("fit", line=30), job.execution("train")
    at = 0
    for turn in range(260):
        predict.at(at, 40 * MS, arg=1)
        predicts.at(at + 20 * MS, 10 * MS, arg=1)
        at += 45 * MS
        if turn >= 20 and turn % 3 == 0:
            fit.at(at, fit_ms * MS, arg=32)
            trains.at(at + fit_ms * MS // 4, fit_ms * MS // 2, arg=1)
            at += fit_ms * MS + 5 * MS
    return job


def test_training_comes_before_what_it_predicts() -> None:
    """A loop that predicts and trains steps by its fits, and its predictions are a kind with a count of their own."""
    job = reinforced(fit_ms=60)
    assert made(job) == [("training", 80, True), ("prediction", 260, False)]
    assert job.steps().title == "Keras fit"
    assert "training-before-prediction" in [choice.rule for choice in summary(job).step_choice]


@pytest.mark.parametrize(("fit_ms", "trains"), [(3, False), (6, True)])
def test_a_training_that_hardly_takes_time_is_not_the_step(fit_ms: int, trains: bool) -> None:
    """Where the fits take less than 3 % of the time, the job is one that predicts; both are listed either way."""
    assert set(made(reinforced(fit_ms=fit_ms))) == {("training", 80, trains), ("prediction", 260, not trains)}


@pytest.mark.parametrize(("step_ms", "trains"), [(10, False), (30, True)])
def test_long_rows_of_predictions_between_short_fits_are_the_step(step_ms: int, trains: bool) -> None:
    """Where no training step but the first of each fit holds predictions, a training of 10 % of the time is needed."""
    job = Job()
    predict, execution = job.loop("predict", line=12), job.execution("train")
    at = 0
    for _ in range(10):
        for _ in range(60):
            predict.at(at, 80 * MS)
            at += 90 * MS
        for _ in range(20):
            execution.at(at, step_ms * MS, arg=1)
            at += (step_ms + 1) * MS
    assert set(made(job)) == {("training", 200, trains), ("prediction", 600, not trains)}


def test_predictions_after_a_training_are_judged_by_their_time() -> None:
    """A long scoring after a short training is not a part of it."""
    job = Job()
    job.loop("fit").at(0, 5 * S)
    job.execution("train").every(100 * MS, 50, dur=80 * MS, arg=1)
    job.loop("predict").every(100 * MS, 400, dur=80 * MS, start=6 * S)
    assert made(job) == [("prediction", 400, True), ("training", 50, False)]


def test_calls_of_one_function_that_run_other_graphs_are_two_kinds() -> None:
    """100 training steps and 160 evaluation calls of the same tf.function are not 260 steps."""
    job = Job()
    job.trace(0, MS, updates=4)
    job.trace(2500 * MS, MS, updates=0, ordinal=2)
    first, train, evaluate = job.function(), job.function(role="updates"), job.function(role="reads")
    at = 0
    for epoch in range(4):
        for _ in range(25):
            (train if epoch else first).at(at, 80 * MS)
            at += 100 * MS
        for _ in range(40):
            evaluate.at(at, 20 * MS)
            at += 25 * MS
    assert made(job) == [("training", 100, True), ("evaluation", 160, False)]


def test_a_function_that_makes_its_variables_first_trains() -> None:
    """The first of the two traces of a first call may change nothing yet: the function trains all the same."""
    job = Job()
    job.trace(0, MS, updates=0)
    job.trace(2 * MS, MS, updates=4)
    job.function().every(100 * MS, 50, dur=80 * MS)
    assert made(job) == [("training", 50, True)]


def test_a_function_called_once_a_step_is_a_part_of_it() -> None:
    """What changes no variable and is called between two steps is no maker."""
    job = Job()
    job.trace(0, MS, updates=4, line=10)
    job.trace(MS, MS, updates=0, line=30, function="augment")
    job.function(line=10).every(100 * MS, 50, dur=60 * MS)
    job.function("augment", line=30).every(100 * MS, 50, dur=30 * MS, start=65 * MS)
    assert made(job) == [("training", 50, True)]


def test_validation_and_callbacks_of_a_fit_are_no_makers() -> None:
    """What a fit evaluates and its callbacks predict is a part of it: one maker."""
    job = Job()
    execution, evaluate, predict = job.execution("train"), job.loop("evaluate"), job.loop("predict")
    job.loop("fit").at(0, 60 * S)
    for epoch in range(10):
        execution.every(100 * MS, 40, dur=80 * MS, start=epoch * 6 * S, arg=1)
        evaluate.at(epoch * 6 * S + 4 * S, S)
        predict.at(epoch * 6 * S + 5 * S, S // 2)
    assert made(job) == [("training", 400, True)]


def test_explicit_steps_are_the_only_maker() -> None:
    """Where the user marks steps, nothing else is counted beside them."""
    job = reinforced(fit_ms=60)
    job.step().every(100 * MS, 100, dur=0)
    assert made(job) == [("step", 100, True)]


def test_rules_have_names_and_one_order() -> None:
    """Each rule is told apart in the report by its name."""
    names = [name for name, _ in RULES]
    assert len(set(names)) == len(names)
    assert names.index("training-before-prediction") < names.index("best-cover")


def test_what_acts_between_updates_is_told_from_what_learns() -> None:
    """An eager model that is called for each action and in each update: the update is the step, and the report says
    what the actions take of it.
    """
    job = Job()
    act, learn = (job.call(Kind.MODEL_CALL, "Sequential", call_file=SCRIPT, call_line=line) for line in (20, 9))
    update = job.call(Kind.APPLY, "apply_gradients", call_file=SCRIPT, call_line=12)
    for turn in range(60):
        at = turn * 100 * MS
        act.every(9 * MS, 8, dur=5 * MS, start=at)
        learn.at(at + 75 * MS, 5 * MS)
        update.at(at + 85 * MS, 5 * MS)
    told = summary(job)
    assert told.steps == 60
    assert [(one.kind, one.count, one.main) for one in told.step_makers] == [
        ("training", 60, True),
        ("call", 480, False),
    ]
    assert [one.step_ratio for one in told.step_makers] == [pytest.approx(0.05), pytest.approx(0.4)]


@pytest.mark.parametrize(("rounds", "makers"), [(1, 1), (3, 2)])
def test_updates_of_two_models_are_two_makers_if_one_comes_more_often(rounds: int, makers: int) -> None:
    """A critic updated as often as its generator is part of the same step; updated three times as often, it is not."""
    job = Job()
    critic, generator = (job.call(Kind.APPLY, "apply_gradients", call_file=SCRIPT, call_line=line) for line in (9, 15))
    for turn in range(60):
        critic.every(20 * MS, rounds, dur=5 * MS, start=turn * 100 * MS)
        generator.at(turn * 100 * MS + 80 * MS, 5 * MS)
    assert len(summary(job).step_makers) == makers


def test_rare_updates_beside_calls_are_a_training_of_their_own() -> None:
    """A model that acts, and is updated late and rarely, makes the steps; its updates are told apart, once."""
    job = Job()
    act = job.call(Kind.MODEL_CALL, "Sequential", call_file=SCRIPT, call_line=20)
    gradient, update = job.call(Kind.GRADIENT, "gradient"), job.call(Kind.APPLY, "apply_gradients")
    act.every(10 * MS, 400, dur=5 * MS)
    for turn in range(20, 40):
        gradient.at(turn * 100 * MS + 6 * MS, MS)
        update.at(turn * 100 * MS + 8 * MS, MS)
    assert made(job) == [("step", 400, True), ("training", 20, False)]


def test_runs_in_a_row_between_the_steps_are_told() -> None:
    """A session that evaluates twenty batches after every hundred steps: the report says what they take."""
    job = Job()
    train = job.call(Kind.SESSION_RUN, "train", call_file=SCRIPT, call_line=12)
    check = job.call(Kind.SESSION_RUN, "loss", call_file=SCRIPT, call_line=15)
    for turn in range(8):
        train.every(10 * MS, 100, dur=8 * MS, start=turn * 1400 * MS)
        check.every(20 * MS, 20, dur=10 * MS, start=turn * 1400 * MS + 1000 * MS)
    assert made(job) == [("step", 800, True), ("call", 160, False)]


def test_the_last_update_may_be_missing() -> None:
    """A short eager run that is stopped within its ninth step has one maker."""
    job = Job()
    job.call(Kind.MODEL_CALL, "LSTM", call_file=SCRIPT, call_line=20).every(100 * MS, 9, dur=50 * MS)
    job.call(Kind.APPLY, "apply_gradients").every(100 * MS, 8, dur=5 * MS, start=80 * MS)
    assert len(summary(job).step_makers) == 1


def test_two_predictions_of_a_turn_are_one_step() -> None:
    """An agent that asks its policy, then its value, has a step for each turn, and both lines as makers."""
    job = Job()
    policy, value, execution = job.loop("predict", line=39), job.loop("predict", line=40), job.execution("predict")
    for turn in range(30):
        for call, at in ((policy, 0), (value, 40 * MS)):
            call.at(turn * 100 * MS + at, 35 * MS, arg=1)
            execution.at(turn * 100 * MS + at + 10 * MS, 20 * MS, arg=1)
    assert made(job) == [("prediction", 30, True), ("prediction", 30, False)]
