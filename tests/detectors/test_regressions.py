"""What was once wrong: the smallest session that showed it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, TRACED, US, Frame, Job, S
from tests.detectors.jobs import (
    LOOP_LINE,
    PERIOD,
    REPORT,
    STEPS,
    keras_fit,
    predicting,
    retraced,
    train_loop,
)

from stepscope.app.report import overhead
from stepscope.derive.input import pipeline
from stepscope.derive.python.loop_source import role_of_line
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.events import AgentCost, IteratorModel
from stepscope.model.report.finding import Finding
from stepscope.wire.kinds import Flag, Kind


def find(job: Job) -> tuple[Finding, ...]:
    """What all detectors say, the costliest first; none may fail."""
    findings, _, failures = run(ALL, job.view())
    assert failures == ()
    return findings


def outcome(job: Job, code: str) -> str:
    """What became of one detector."""
    _, checked, failures = run(ALL, job.view())
    assert failures == ()
    return {c.detector: c.outcome for c in checked}[code]


# ---- steps -------------------------------------------------------------------------------------------------------


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


def on_batch(wait: int, call: int) -> Job:
    """A loop that pulls a batch and calls Keras' train_on_batch with it."""
    job = Job()
    iterator = job.iterator(batch=32)
    job.nexts().every(PERIOD, STEPS, dur=wait, arg=iterator)
    job.loop("train_on_batch").every(PERIOD, STEPS, dur=call + MS, start=wait, arg=32)
    job.execution("train").every(PERIOD, STEPS, dur=call, start=wait + 500 * US, arg=1)
    return job


def test_input_of_train_on_batch_is_not_hidden() -> None:
    """The wait of a loop around train_on_batch is in its own next and is found."""
    assert [f.code for f in find(on_batch(60 * MS, 20 * MS))] == ["INP001"]


def test_a_busy_train_on_batch_is_clear() -> None:
    """train_on_batch has its arrays in hand: its compiled function cannot hide a wait for input."""
    assert outcome(on_batch(2 * MS, 90 * MS), "INP001") == "clear"


def test_samples_of_train_on_batch() -> None:
    """The samples that a train_on_batch call knows are the step's."""
    assert set(on_batch(2 * MS, 90 * MS).steps().samples.tolist()) == {32}


# ---- detectors ---------------------------------------------------------------------------------------------------


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


def test_a_slow_first_call_does_not_hide_a_callback() -> None:
    """A callback whose first call (an import) takes longer than a fit is slow all the same."""
    job = Job()
    fit, execution = job.loop("fit"), job.execution("train")
    callback = job.callback("Plot.on_epoch_end")
    fit.at(0, 3 * S)
    callback.at(50 * MS, 2 * S)
    execution.at(0, 40 * MS, arg=1)
    for i in range(STEPS):
        at = 3 * S + i * PERIOD
        fit.at(at, 95 * MS)
        execution.at(at, 40 * MS, arg=1)
        callback.at(at + 45 * MS, 40 * MS)
    assert "HST004" in [f.code for f in find(job)]


def test_the_cost_of_retracing_in_every_step_leaves_the_step_its_run() -> None:
    """Where every call traces, the interval of the cost contains what tracing itself took."""
    job = retraced(60 * MS)
    (found,) = find(job)
    assert found.cost.low <= 0.6 <= found.cost.high


@pytest.mark.parametrize("after", [True, False])
def test_samples_without_lines(after: bool) -> None:
    """Stacks whose lines are not known (0) make no detector fail."""
    job = train_loop(50 * MS)
    frames = (Frame(SCRIPT, "main", REPORT if after else 43), Frame(SCRIPT, "report", 0))
    job.samples([i * PERIOD + 70 * MS for i in range(STEPS)], *frames)
    assert find(job)


def test_samples_without_time() -> None:
    """Samples that stand for no time make no detector fail."""
    job = train_loop(50 * MS)
    job.samples([i * PERIOD + 70 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT), dur=0)
    find(job)


@pytest.mark.parametrize("quota", [1.0, 2.0])
def test_a_quota_of_whole_cpus_is_found(quota: float) -> None:
    """A quota of one or two CPUs on a machine of eight, of which the job would use four, is found."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=8, got=quota, waiting=4.0 - quota, quota=quota, throttled=0.9)
    assert [f.code for f in find(job)] == ["CFG001"]


def test_retraces_of_the_warm_up_do_not_make_a_steady_one_many() -> None:
    """One trace in the steady steps is no finding, however many there were before."""
    job = Job()
    call = job.function()
    at = 0
    for i in range(STEPS):
        tracing = {0: 10 * MS, 1: 10 * MS, 2: 10 * MS, 3: 10 * MS, 50: 400 * MS}.get(i, 0)
        call.at(at, 20 * MS + tracing, flags=TRACED if tracing else 0)
        if tracing:
            job.trace(at, tracing, cause="shape" if i in {1, 2, 50} else "first", argument="x")
        at += PERIOD + tracing
    assert find(job) == ()


# ---- formats and accounts ----------------------------------------------------------------------------------------


def test_a_read_with_other_letters_is_told() -> None:
    """A read whose text is not even ASCII is a diagnostic as any damaged one."""
    job = keras_fit(50 * MS)
    job.event(IteratorModel(at=S, iterator=1, proto="é"))
    assert len(pipeline.build(job.steps()).diagnostics) == 1


@pytest.mark.parametrize("text", ["-" * 100_000 + "1", "+".join(["x"] * 100_000)])
def test_a_source_that_the_parser_gives_up_on(text: str) -> None:
    """Source too deep for Python's own parser is unknown, not an error."""
    assert role_of_line(f"for x in y:\n  {text}\n", 1, 2) == "unknown"


def test_samples_of_the_cpu_timer_are_accounted() -> None:
    """A CPU sample is taken on the thread of the steps: it costs, other than one of the agent's thread."""
    job = Job()
    job.step().every(PERIOD, STEPS, dur=0)
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    before = overhead.account(job.view()).ratio
    number = job.stack(Frame(SCRIPT, "main", REPORT))
    job.records += [
        (job.records[0])._replace(start_ns=i * 25 * MS, dur_ns=25 * MS, kind=Kind.SAMPLE, name=number, flags=Flag.CPU)
        for i in range(4, 380)
    ]
    assert overhead.account(job.view()).ratio > before


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
