"""Repeated traces by function and reason, with what they cost the steady steps."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, TRACED, Job

from stepscope.causes.job import purpose
from stepscope.derive.python.retraces import RetraceGroup, build

PERIOD = 100 * MS


def groups(job: Job) -> tuple[RetraceGroup, ...]:
    """The groups of a job's retraces."""
    return build(job.steps())


def steady(job: Job) -> Job:
    """Steps of a function that takes 20 ms and is not traced."""
    job.function("train_step", line=10).every(PERIOD, 50, dur=20 * MS)
    return job


def test_traces_group_by_function_cause_and_argument() -> None:
    """Each function, reason and argument is one group, the costliest first."""
    job = steady(Job())
    for i in range(2, 12):
        job.trace(i * PERIOD + 30 * MS, 5 * MS, cause="shape", argument="x")
        job.trace(i * PERIOD + 40 * MS, 10 * MS, cause="shape", argument="y")
        job.trace(i * PERIOD + 55 * MS, MS, cause="shape", argument="x", line=90)
    found = groups(job)
    assert [(g.argument, g.example.line, len(g.traces), g.steps, g.cost_ns // MS) for g in found] == [
        ("y", 10, 10, 10, 100),
        ("x", 10, 10, 10, 50),
        ("x", 90, 10, 10, 10),
    ]


def test_first_traces_are_no_retraces() -> None:
    """What is traced for the first time is not traced again."""
    job = steady(Job())
    for i in range(2, 12):
        job.trace(i * PERIOD + 30 * MS, 5 * MS, cause="first", line=100 + i)
    assert groups(job) == ()


def test_a_function_made_anew_is_one_group() -> None:
    """Functions of one definition that are made again and again count together."""
    job = steady(Job())
    for i in range(2, 12):
        job.trace(i * PERIOD + 30 * MS, 5 * MS, cause="new-function", function_key=i)
    (group,) = groups(job)
    assert (group.cause, len(group.traces)) == ("new-function", 10)


def test_traces_inside_of_a_trace_count_with_it() -> None:
    """Functions traced while another one is traced are not counted twice."""
    job = steady(Job())
    for i in range(2, 12):
        outer = job.trace(i * PERIOD + 30 * MS, 10 * MS, cause="dtype", argument="x")
        job.trace(i * PERIOD + 32 * MS, 5 * MS, cause="dtype", argument="x", line=70, outer=outer.id)
    (group,) = groups(job)
    assert (group.example.line, group.cost_ns) == (10, 100 * MS)


def test_the_call_that_traced_counts_beyond_its_usual_time() -> None:
    """Building the graph's kernels after the trace is the retrace's cost; the run itself is not."""
    job = Job()
    call = job.function()
    for i in range(50):
        again = i in {10, 20, 30}
        call.at(i * PERIOD, (90 if again else 20) * MS, flags=TRACED if again else 0)
        if again:
            job.trace(i * PERIOD + MS, 40 * MS, cause="shape", argument="x")
    (group,) = groups(job)
    assert group.cost_ns == 3 * 70 * MS


def test_warm_up_costs_nothing() -> None:
    """Retraces before the steady steps are not counted."""
    job = steady(Job())
    job.trace(30 * MS, 5 * MS, cause="shape")
    assert groups(job) == ()


def test_other_threads_do_not_count() -> None:
    """A trace on another thread than the step's (tf.data's) does not stop the step."""
    job = steady(Job())
    for i in range(2, 12):
        job.trace(i * PERIOD + 30 * MS, 5 * MS, cause="shape", thread=POOL)
    assert groups(job) == ()


@pytest.mark.parametrize(("owner", "count"), [("keras", 0), ("user", 1)])
def test_what_keras_makes_anew_in_a_loop_belongs_to_it(owner: str, count: int) -> None:
    """Keras' own traces inside of fit or predict are that call's cost; the user's are retraces."""
    job = Job()
    job.loop("predict").every(PERIOD, 50, dur=60 * MS)
    for i in range(2, 12):
        job.trace(i * PERIOD + MS, 5 * MS, cause="new-function", owner=owner)
    assert len(groups(job)) == count


def test_lost_lines_are_no_reason_to_fail() -> None:
    """A TRACE record whose line was lost is left out."""
    job = steady(Job())
    for i in range(2, 12):
        job.trace(i * PERIOD + 30 * MS, 5 * MS, cause="shape")
    job.events[:] = [e for e in job.events if type(e).__name__ != "Traced"]
    assert groups(job) == ()


def test_the_view_knows_functions_that_train() -> None:
    """A function whose graph changes variables is told by its place."""
    job = Job()
    trains = job.function("train_step", line=10).every(PERIOD, 50, dur=20 * MS)
    job.function("metrics", line=90).every(PERIOD, 50, dur=20 * MS, start=30 * MS)
    job.trace(0, MS, cause="first", line=10, updates=4)
    job.trace(30 * MS, MS, cause="first", line=90, function="metrics")
    assert job.view().get(purpose.updating_functions) == {trains.name.id}
    assert job.view().place(SCRIPT, 10).file == "train.py"


@pytest.mark.parametrize(("owner", "first", "counted"), [("jax", False, 10), ("jax", True, 0), ("keras", False, 0)])
def test_what_jax_compiles_for_a_later_batch_of_a_fit_counts(owner: str, counted: int, *, first: bool) -> None:
    """Of Keras on JAX; what the first call of each fit compiles belongs to that fit, what Keras sets up, too."""
    job = Job()
    job.execution().every(PERIOD, 50, dur=20 * MS, arg=1)
    length = 1 if first else 50
    for fit in range(50 // length):
        job.loop("fit").at(fit * length * PERIOD - (0 if fit == 0 else MS), length * PERIOD - 2 * MS)
    for i in range(2, 12):
        job.trace(i * PERIOD + 5 * MS, 5 * MS, cause="shape", argument="data[0]", owner=owner)
    assert sum(len(group.traces) for group in groups(job)) == counted
