"""The task list: counts, times, outliers and trends of what a job does again and again."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, SCRIPT, US, Job
from tests.detectors.jobs import keras_fit

from stepscope.causes.host import tasks
from stepscope.model.report.task import Task
from stepscope.wire.kinds import Flag, Kind

THINNED = int(Flag.THINNED)


def of(job: Job, name: str) -> Task:
    """The one task of that name."""
    (found,) = [task for task in job.view().get(tasks.build) if task.name == name]
    return found


def test_counts_are_exact_when_most_calls_are_only_counted() -> None:
    """Thinned records stand for themselves, counted calls for the rest: nothing is estimated."""
    job = Job()
    run = job.call(Kind.SESSION_RUN, "train, loss:0")
    run.every(10 * MS, 50, dur=MS).every(10 * MS, 30, dur=MS, start=500 * MS, flags=THINNED)
    run.counted(500 * MS, calls=870, total=870 * MS)
    task = of(job, "train, loss:0")
    assert (task.count, task.timed, task.exact) == (950, 80, True)
    assert (task.total_ns, task.mean_ns) == (950 * MS, MS)


def test_quantiles_weigh_thinned_records_by_what_they_stand_for() -> None:
    """900 fast calls of which 9 were recorded are nine tenths of the calls, not a tenth."""
    job = Job()
    run = job.call(Kind.SESSION_RUN, "train")
    run.every(10 * MS, 100, dur=5 * MS)
    run.every(10 * MS, 9, dur=MS, start=1000 * MS, flags=THINNED).counted(1000 * MS, calls=891, total=891 * MS)
    task = of(job, "train")
    assert (task.p50_ns, task.p95_ns) == (MS, 5 * MS)


def test_runs_with_the_same_fetches_are_one_task() -> None:
    """Called from two lines, a Session.run is one task, at the line that calls it most; what hooks added is stated."""
    job = Job()
    hook = {"added": ["StepCounterHook: global_step:0"]}
    place = {"call_file": SCRIPT, "call_function": "main"}
    job.call(Kind.SESSION_RUN, "train", call_line=5, **place).every(10 * MS, 5, dur=MS)
    job.call(Kind.SESSION_RUN, "train", call_line=9, **place, **hook).every(10 * MS, 20, dur=MS, start=100 * MS)
    task = of(job, "train")
    assert (task.kind, task.count) == ("Session.run", 25)
    assert task.where is not None
    assert task.where.line == 9
    assert [(p.text, p.count) for p in task.added] == [("StepCounterHook: global_step:0", 20)]


def test_functions_of_one_name_and_two_places_are_two_tasks() -> None:
    """A tf.function is known by where it is defined."""
    job = Job()
    job.function("step", line=10).every(10 * MS, 5, dur=MS)
    job.function("step", line=30).every(10 * MS, 7, dur=MS, start=5 * MS)
    assert sorted(t.count for t in job.view().get(tasks.build) if t.kind in {"tf.function", "request"}) == [5, 7]


def test_keras_loops_and_their_functions() -> None:
    """A fit is a task at its calling line, its compiled function another."""
    found = {t.name: t for t in keras_fit(5 * MS).view().get(tasks.build)}
    assert (found["fit"].kind, found["fit"].count, found["fit"].rate_per_s) == ("Keras loop", 1, None)
    assert found["fit"].where is not None
    assert (found["train_function"].kind, found["train_function"].count) == ("Keras function", 100)


def test_the_call_that_serves_an_inference_loop_is_a_request() -> None:
    """A function that changes no variable, called again and again, serves requests; one that does, trains."""
    serve = Job()
    serve.function("serve").every(10 * MS, 50, dur=MS)
    assert of(serve, "serve").kind == "request"
    train = Job()
    train.function("train_step", line=10).every(10 * MS, 50, dur=MS)
    train.trace(0, MS, updates=4)
    assert of(train, "train_step").kind == "tf.function"
    assert all(t.kind != "request" for t in keras_fit(5 * MS).view().get(tasks.build))


def test_runs_of_onnx_runtime_are_requests_and_steps() -> None:
    """Requests of changing size: steps with the samples of each, in the words of ONNX Runtime."""
    job = Job()
    run = job.call(Kind.INFERENCE, "bert.onnx", call_file=SCRIPT, call_line=20)
    for number in range(40):
        run.at(number * 10 * MS, 8 * MS, arg=8 + number % 3)
    steps = job.steps()
    assert (steps.kind, steps.title) == (Kind.INFERENCE, "ONNX Runtime bert.onnx")
    assert steps.samples.tolist() == [8 + number % 3 for number in range(40)]
    assert of(job, "bert.onnx").kind == "request"
    anatomy = job.view().anatomy
    assert anatomy is not None
    assert anatomy.ratio("call") == pytest.approx(0.8)


def test_runs_of_onnx_runtime_beside_a_training_are_no_requests() -> None:
    """A job that trains may run another model too."""
    job = keras_fit(5 * MS)
    job.call(Kind.INFERENCE, "teacher.onnx").every(100 * MS, 50, dur=MS, start=50 * MS)
    assert job.steps().kind == Kind.EXECUTION
    assert of(job, "teacher.onnx").kind == "ONNX Runtime run"


def test_rate_is_of_the_time_that_the_task_was_at_work() -> None:
    """A hundred calls, one each 10 ms, are a hundred a second however long the job ran before and after."""
    job = Job()
    job.function("serve").every(10 * MS, 100, dur=MS, start=5000 * MS)
    assert of(job, "serve").rate_per_s == pytest.approx(100, rel=0.02)


def test_outliers_stand_far_above_the_rest() -> None:
    """A call of thirty medians is an outlier; the spread of the others is none."""
    job = Job()
    call = job.function("serve")
    for i in range(200):
        call.at(i * 10 * MS, 30 * MS if i in (50, 150) else MS + (i % 7) * 100 * US)
    task = of(job, "serve")
    assert (task.outliers, task.max_ns) == (2, 30 * MS)


@pytest.mark.parametrize(("growth", "low", "high"), [(0.0, 0.0, 0.0), (0.5, 0.3, 0.5), (-0.3, -0.5, -0.2)])
def test_trend(growth: float, low: float, high: float) -> None:
    """Calls that get slower or faster over the run are told from those that only vary."""
    rng = np.random.default_rng(1)
    job = Job()
    call = job.function("serve")
    for i in range(600):
        call.at(i * 20 * MS, int((1 + growth * i / 600) * 5 * MS * rng.lognormal(0, 0.1)))
    trend = of(job, "serve").trend_ratio
    assert trend is not None
    assert low <= trend <= high


def test_noise_has_no_trend() -> None:
    """In two hundred noisy, steady tasks at most a handful look like a trend: the test is at 1 %."""
    rng = np.random.default_rng(2)
    starts = np.arange(400, dtype=np.int64) * 10 * MS
    seen = [tasks._trend(starts, (MS * rng.lognormal(0, 0.5, 400)).astype(np.int64)) for _ in range(200)]
    assert sum(bool(trend) for trend in seen) <= 6


def test_few_calls_have_no_trend() -> None:
    """Twenty calls say nothing about it: unknown, not steady."""
    job = Job()
    job.function("serve").every(10 * MS, 20, dur=MS)
    assert of(job, "serve").trend_ratio is None


def test_lost_records_make_a_count_the_least_there_was() -> None:
    """Counts say that they are not exact where records were overwritten."""
    import msgspec

    from stepscope.derive.view import SessionView

    job = Job()
    job.function("serve").every(10 * MS, 20, dur=MS)
    session = job.session()
    worker = session.workers[0]
    lossy = msgspec.structs.replace(worker, info=msgspec.structs.replace(worker.info, lost_records=3))
    (task,) = SessionView(msgspec.structs.replace(session, workers=(lossy,))).get(tasks.build)
    assert (task.count, task.exact) == (20, False)


def test_runs_of_a_session_are_steps_in_gaps_too() -> None:
    """While hooks are detached a run is recorded all the same: it is counted as a step, and not split, for its hook is
    unseen; the runs that the hook makes meanwhile are no steps."""
    job = Job()
    run, inner = job.call(Kind.SESSION_RUN, "train"), job.call(Kind.SESSION_RUN, "w:0")
    hook = job.call(Kind.CALLBACK, "Slow.after_run", hook="after_run")
    for i in range(100):
        run.at(i * 10 * MS, 4 * MS)
        inner.at(i * 10 * MS + 5 * MS, MS)
        if not 20 <= i < 80:
            hook.at(i * 10 * MS + 4 * MS, 5 * MS)
    job.gap(200 * MS, 600 * MS, 0)
    view = job.view()
    assert view.steps is not None
    assert view.steps.call is not None
    assert (view.steps.call.text, view.steps.count) == ("train", 100)
    assert view.steps.steady_count == 100 - 60 - 2
    assert view.anatomy is not None
    assert view.anatomy.ratio("callbacks") == pytest.approx(0.5)
    assert (of(job, "train").count, of(job, "train").exact) == (100, True)


@pytest.mark.parametrize("flags", [0, int(Flag.TRACED)])
def test_calls_that_nobody_timed_do_not_last_as_long_as_the_first(flags: int) -> None:
    """A first call of four seconds says nothing about the 2,000 calls that were only counted in gaps."""
    job = Job()
    call = job.function("serve")
    call.at(0, 4000 * MS, flags=flags).every(10 * MS, 100, dur=8 * MS, start=4000 * MS)
    job.gap(5000 * MS, 20_000 * MS, 2000, Kind.FUNCTION)
    call.every(10 * MS, 100, dur=8 * MS, start=25_000 * MS)
    task = of(job, "serve")
    assert task.count == 2201
    assert task.usual_ns == 8 * MS
    assert task.total_ns == pytest.approx(4000 * MS + 2200 * 8 * MS, rel=0.001)
    assert task.mean_ns * task.count <= 25_100 * MS


def test_slow_calls_among_the_others_stay_in_the_mean() -> None:
    """Where every tenth call is slow, so are those that nobody timed."""
    job = Job()
    call = job.function("serve")
    for turn in range(100):
        call.at(turn * 100 * MS, (50 if turn % 10 == 9 else 5) * MS)
    job.gap(10_000 * MS, 90_000 * MS, 900, Kind.FUNCTION)
    assert of(job, "serve").mean_ns == pytest.approx(9.5 * MS, rel=0.01)


@pytest.mark.parametrize("kind", [Kind.FUNCTION, Kind.MODEL_CALL])
def test_calls_that_a_gap_recorded_are_counted_once(kind: Kind) -> None:
    """Of calls that go on being recorded in a gap one in four has a record; the gap counts them all as well."""
    job = Job()
    call = job.call(kind, "update", call_file=SCRIPT, call_line=12)
    call.every(MS, 200, dur=0)
    job.gap(200 * MS - US, 400 * MS, 0, kind)
    call.every(4 * MS, 100, dur=0, start=200 * MS, flags=THINNED).counted(200 * MS, calls=300, total=0)
    call.every(MS, 200, dur=0, start=600 * MS)
    assert of(job, "update").count == 800
