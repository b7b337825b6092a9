"""The parts of a step add up to its wall time, and each moment is told by what explains it best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import MS, NESTED, POOL, TRACED, US, Job

from stepscope.derive.steps import anatomy
from stepscope.derive.steps.anatomy import Anatomy
from stepscope.model.report.components import COMPONENTS
from stepscope.wire.kinds import Kind

PERIOD = 100 * MS
STEPS = 20
_KINDS = st.sampled_from(
    [
        Kind.EXECUTION,
        Kind.LOOP,
        Kind.HOOK,
        Kind.CALLBACK,
        Kind.FUNCTION,
        Kind.NEXT,
        Kind.SAVE,
        Kind.SUMMARY,
        Kind.SYNC,
        Kind.GC,
        Kind.SAMPLE,
        Kind.SPAN,
        Kind.TICK,
    ]
)
_RECORDS = st.lists(
    st.tuples(_KINDS, st.integers(0, STEPS * PERIOD), st.integers(0, 3 * PERIOD), st.sampled_from([0, NESTED, TRACED])),
    max_size=40,
)


def stepped() -> Job:
    """Explicit steps of 100 ms."""
    job = Job()
    job.step().every(PERIOD, STEPS, dur=0)
    return job


def split(job: Job, wait: float = 0.0) -> Anatomy:
    """The split of the job's steps."""
    return anatomy.build(job.steps(), wait)


@given(records=_RECORDS, wait=st.floats(0, 2 * PERIOD))
def test_components_add_up_to_the_wall_time(records: list[tuple[Kind, int, int, int]], wait: float) -> None:
    """Whatever is recorded, and whatever the input model says, each step's components add up to the step."""
    job = stepped()
    names = {kind: job.call(kind, kind.name, role="evaluate") for kind, *_ in records}
    for kind, start, dur, flags in records:
        names[kind].at(start, dur, flags=flags)
    job.trace(2 * PERIOD + MS, 5 * MS)
    taken = split(job, wait)
    steps = taken.steps
    assert taken.per_step.sum(axis=1) == pytest.approx(steps.durations[steps.steady])
    assert taken.wall_ns == pytest.approx(steps.steady_ns)
    assert (taken.per_step >= 0).all()
    assert sum(taken.ratio(c) for c in COMPONENTS) == pytest.approx(1)
    assert sum(taken.mean_ns(c) for c in COMPONENTS) == pytest.approx(PERIOD)


def test_each_part_of_a_custom_step_is_its_own() -> None:
    """Input, call, host copy, collection, saving and the Python between them get what was recorded of each."""
    job = stepped()
    job.nexts().every(PERIOD, STEPS, dur=10 * MS)
    job.function().every(PERIOD, STEPS, dur=40 * MS, start=12 * MS)
    job.call(Kind.SYNC, "numpy").every(PERIOD, STEPS, dur=5 * MS, start=52 * MS)
    job.call(Kind.GC, "gc").every(PERIOD, STEPS, dur=3 * MS, start=58 * MS)
    job.save().every(PERIOD, STEPS, dur=7 * MS, start=62 * MS)
    taken = split(job)
    parts = {c: round(taken.mean_ns(c) / MS) for c in COMPONENTS}
    assert {c: ms for c, ms in parts.items() if ms} == {
        "input-wait": 10,
        "call": 40,
        "host-sync": 5,
        "gc": 3,
        "saving": 7,
        "other-python": 35,
    }


def test_what_is_inside_of_a_callback_is_the_callback() -> None:
    """A model call, a collection or a copy inside of a callback is the callback's; saving inside of it is saving."""
    job = stepped()
    job.callback("C.on_train_batch_end").every(PERIOD, STEPS, dur=30 * MS, start=50 * MS)
    job.function("inner").every(PERIOD, STEPS, dur=10 * MS, start=55 * MS)
    job.call(Kind.GC, "gc").every(PERIOD, STEPS, dur=2 * MS, start=66 * MS)
    job.save().every(PERIOD, STEPS, dur=4 * MS, start=70 * MS)
    taken = split(job)
    assert [taken.mean_ns(c) for c in ("callbacks", "saving", "call", "gc")] == [26 * MS, 4 * MS, 0, 0]


def test_keras_own_work_around_callbacks_counts_with_them() -> None:
    """Hooks are callbacks; Keras' loop outside of everything else is the framework."""
    job = Job()
    job.loop("fit").at(0, STEPS * PERIOD)
    job.execution().every(PERIOD, STEPS, dur=60 * MS, arg=1)
    job.call(Kind.HOOK, "on_train_batch_end").every(PERIOD, STEPS, dur=10 * MS, start=60 * MS)
    taken = split(job)
    assert [taken.mean_ns(c) for c in ("call", "callbacks", "framework", "other-python")] == [
        60 * MS,
        10 * MS,
        30 * MS,
        0,
    ]


def test_logs_that_keras_reads_are_a_wait_inside_of_its_hook() -> None:
    """What Keras waits for before callbacks is not theirs; a read by a callback is the callback's."""
    job = Job()
    job.loop("fit").at(0, STEPS * PERIOD)
    job.execution().every(PERIOD, STEPS, dur=60 * MS, arg=1)
    job.nexts().every(PERIOD, STEPS, dur=20 * MS, start=5 * MS)
    job.call(Kind.HOOK, "on_train_batch_end").every(PERIOD, STEPS, dur=30 * MS, start=60 * MS)
    job.call(Kind.SYNC, "logs", role="logs").every(PERIOD, STEPS, dur=12 * MS, start=61 * MS)
    job.callback("C.on_train_batch_end").every(PERIOD, STEPS, dur=10 * MS, start=75 * MS)
    job.call(Kind.SYNC, "float").every(PERIOD, STEPS, dur=4 * MS, start=76 * MS)
    taken = split(job)
    assert [taken.mean_ns(c) for c in ("call", "input-wait", "host-sync", "callbacks", "framework")] == [
        40 * MS,
        20 * MS,
        12 * MS,
        18 * MS,
        10 * MS,
    ]


def test_validation_is_told_apart_from_the_step() -> None:
    """An evaluation nested in fit is evaluation, its compiled calls included."""
    job = Job()
    job.loop("fit").at(0, STEPS * PERIOD)
    job.execution().every(PERIOD, STEPS, dur=60 * MS, arg=1)
    job.loop("evaluate").at(10 * PERIOD + 65 * MS, 30 * MS, flags=NESTED)
    job.execution("test").at(10 * PERIOD + 70 * MS, 20 * MS)
    taken = split(job)
    assert taken.mean_ns("evaluation") * taken.steps.steady_count == pytest.approx(30 * MS)
    assert taken.mean_ns("call") == pytest.approx(60 * MS)


def test_a_call_that_traced_counts_as_tracing_beyond_its_usual_time() -> None:
    """Graph compilation after the trace is tracing; the run of the function is the call."""
    job = Job()
    call = job.function()
    for i in range(STEPS):
        slow = i in {5, 10}
        call.at(i * PERIOD, 80 * MS if slow else 20 * MS, flags=TRACED if slow else 0)
        if slow:
            job.trace(i * PERIOD, 30 * MS, cause="shape")
    taken = split(job)
    count = taken.steps.steady_count
    assert taken.mean_ns("tracing") * count == pytest.approx(2 * 60 * MS)
    assert taken.mean_ns("call") == pytest.approx(20 * MS)


def test_other_threads_take_no_part() -> None:
    """What runs on another thread leaves the step thread's time alone."""
    job = stepped()
    job.function().every(PERIOD, STEPS, dur=90 * MS, thread=POOL)
    job.save().every(PERIOD, STEPS, dur=90 * MS, thread=POOL)
    assert split(job).ratio("other-python") == 1


def test_hidden_input_wait_moves_from_the_call() -> None:
    """What tf.data's model says of a compiled step's wait is taken from the call, and never more than it has."""
    job = Job()
    job.execution().every(PERIOD, STEPS, dur=80 * MS, arg=1)
    some = split(job, 50.0 * MS)
    assert some.mean_ns("input-wait") == pytest.approx(50 * MS)
    assert some.mean_ns("call") == pytest.approx(30 * MS)
    assert some.compiled_wait_ns == pytest.approx(50 * MS)
    too_much = split(job, 500.0 * MS)
    assert too_much.mean_ns("input-wait") == pytest.approx(80 * MS)
    assert too_much.mean_ns("call") == pytest.approx(0)


def test_a_moment_is_told_by_its_component() -> None:
    """Samples find the component of their moment; moments outside of the steady steps have none."""
    job = stepped()
    job.nexts().every(PERIOD, STEPS, dur=10 * MS)
    job.call(Kind.HOOK, "h").every(PERIOD, STEPS, dur=10 * MS, start=20 * MS)
    times = [5 * MS, 5 * PERIOD + 5 * MS, 5 * PERIOD + 15 * MS, 5 * PERIOD + 25 * MS, 19 * PERIOD + US]
    assert split(job).component_at(np.array(times)) == ["", "input-wait", "other-python", "callbacks", ""]
