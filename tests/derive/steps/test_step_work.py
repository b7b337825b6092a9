"""What the calls are that make steps, where they are made, and what else most steps call."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, SCRIPT, Job

from stepscope.derive.optrace import chosen_traces
from stepscope.derive.steps import step_work
from stepscope.derive.view import SessionView
from stepscope.model.log.events import Name
from stepscope.model.session.session import CaptureInfo, Session, StoredOpTrace
from stepscope.tables.optrace import TraceSource
from stepscope.wire.kinds import Kind


def fitted(role: str = "train", loop: str = "fit") -> Job:
    """Forty steps of a loop of Keras'."""
    job = Job(ended_ns=4_000 * MS)
    job.loop(loop, line=41).at(0, 4_000 * MS)
    job.execution(role).every(100 * MS, 40, dur=90 * MS)
    return job


def looped(updates: int) -> Job:
    """A loop that calls a tf.function whose graph changes so many variables, and a small one of its own."""
    job = Job(ended_ns=4_000 * MS)
    job.function(call_file=SCRIPT, call_line=7, call_function="main").every(100 * MS, 40, dur=80 * MS)
    job.function("report", line=30).every(100 * MS, 40, dur=5 * MS, start=90 * MS)
    job.function("rarely", line=35).every(1_000 * MS, 4, dur=1 * MS, start=96 * MS)
    job.trace(0, MS, updates=updates)
    return job


@pytest.mark.parametrize(
    ("job", "work", "line"),
    [
        (fitted(), "training", 41),
        (fitted("test", "evaluate"), "evaluation", 41),
        (fitted("predict", "predict"), "prediction", 41),
        (looped(3), "training", 7),
        (looped(0), "", 7),
    ],
)
def test_work_and_place(job: Job, work: str, line: int) -> None:
    """By Keras' role, or by variables that the step's graph changes; where the user calls it or Keras' loop."""
    assert (step_work.work(job.steps()), step_work.place(job.steps())) == (work, (SCRIPT, line))


def test_calls_that_most_steps_make() -> None:
    """The step's own call and what every step calls; what few do may be an evaluation."""
    assert {name for kind, name in step_work.usual(looped(3).steps()) if kind == Kind.FUNCTION} == {1, 2}


def captured(work: str, anchors: tuple[tuple[int, int], ...]) -> Session:
    """A fit that holds a trace of steps of some work, made by some calls; the second name is an evaluation."""
    job = fitted()
    job.execution("test").every(100 * MS, 40, dur=2 * MS, start=95 * MS)
    made = Maker()
    for i in range(12):
        made.step(i * 100_000.0, 99_999.0, i)
    source = TraceSource(format="test")
    stored = StoredOpTrace(name="ops-001", worker=str(job.pid), source=source, load=made.trace)
    job.resources["op_traces"] = [stored]
    session = job.session()
    about = CaptureInfo(
        id="a", outcome="done", worker=str(job.pid), work=work, anchors=anchors, files=("optraces/ops-001",), steps=11
    )
    return replace(session, manifest=msgspec.structs.replace(session.manifest, captures=(about,)))


@pytest.mark.parametrize(
    ("work", "name", "joined"), [("training", 2, True), ("evaluation", 3, False), ("", 3, True), ("training", 99, True)]
)
def test_a_trace_of_an_evaluation_is_joined_to_no_training_step(work: str, name: int, joined: bool) -> None:
    """Where the capture says that its steps are other work, made by other calls; else it is joined."""
    session = captured(work, ((int(Kind.EXECUTION), name),))
    found = chosen_traces.build(session, SessionView(session).steps)
    assert (len(found.views), found.others) == ((1, ()) if joined else (0, ("ops-001",)))


@pytest.mark.parametrize(("at", "joined"), [(0, True), (-30, False), (-90, False)])
def test_a_trace_that_the_job_took_by_itself_is_joined_where_the_steps_took_most_of_it(at: int, joined: bool) -> None:
    """Of calls that are not the step's: recording goes on for a while when the steps have begun."""
    session = captured("", ((int(Kind.EXECUTION), 3),))
    steps = SessionView(session).steps
    assert steps is not None
    (about,) = session.manifest.captures
    first = int(steps.starts[np.flatnonzero(steps.recurring)[0]])
    about = msgspec.structs.replace(
        about, asked_by=chosen_traces.FIRST_LOOK, request="first-look", at_ns=first + at * MS, recorded_ns=50 * MS
    )
    session = replace(session, manifest=msgspec.structs.replace(session.manifest, captures=(about,)))
    assert bool(chosen_traces.build(session, steps).views) is joined


def validating(*, over: bool = False) -> Job:
    """A fit that validates for the first time: many evaluations after few training steps."""
    job = Job(ended_ns=4_000 * MS)
    fit = job.loop("fit", line=41)
    job.batch(1 * MS, role="train")
    if over:
        fit.at(1 * MS, 400 * MS)
    job.execution("train").every(10 * MS, 8, dur=9 * MS, start=2 * MS)
    job.execution("test").every(10 * MS, 300, dur=9 * MS, start=500 * MS)
    return job


def test_training_steps_of_a_fit_that_validates() -> None:
    """While the first validation lasts, evaluations are what repeats; the fit's own steps are captured."""
    assert validating().steps().call == Name(id=3, text="test_function", role="test")
    assert step_work.training_beside(validating().steps()) == (2,)
    assert step_work.loop_place(validating().steps(), "fit") == (SCRIPT, 41)
    assert step_work.training_beside(validating(over=True).steps()) == ()
    assert step_work.training_beside(fitted().steps()) == ()
