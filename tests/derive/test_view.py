"""What a view offers to detectors, for the steady steps only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from tests.derive.sessions import CWD, MS, POOL, SCRIPT, US, Frame, Job
from tests.detectors.jobs import CALL, MAKE, PERIOD, REPORT, STEPS, TIDY, nothing, sampled, train_loop

from stepscope.causes.host import statement_role
from stepscope.causes.job import hidden_wait
from stepscope.causes.system import contention
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import Name
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView


def test_events_of_a_process_are_sorted_once() -> None:
    """By their types, in the order written; what is derived is computed once, and not for a copy."""
    job = train_loop(20 * MS)
    job.callback("C.on_train_batch_end").every(PERIOD, STEPS, dur=MS, start=30 * MS)
    (worker,) = job.view().session.workers
    names = worker.all(Name)
    assert names == [event for event in worker.events if isinstance(event, Name)]
    names.clear()
    assert worker.all(Name)
    assert worker.get(stack_samples.stacks_of) is worker.get(stack_samples.stacks_of)
    assert msgspec.structs.replace(worker, events=()).all(Name) == []


def test_time_by_name_is_of_the_steady_steps() -> None:
    """Each name's calls and time, clipped to the steady steps, on the thread of the steps, the longest first."""
    job = train_loop(20 * MS)
    job.save("weights").every(PERIOD, STEPS, dur=5 * MS, start=30 * MS)
    slow = job.save("checkpoint")
    slow.every(10 * PERIOD, 10, dur=60 * MS, start=30 * MS)
    slow.at(0, 90 * MS, thread=POOL)
    rows = job.view().named_times(Kind.SAVE)
    assert [(r.name.text, r.calls, r.total_ns) for r in rows] == [
        ("checkpoint", 9, 9 * 60 * MS),
        ("weights", 98, 98 * 5 * MS),
    ]


def test_counted_calls_are_part_of_their_name() -> None:
    """Short calls that were counted add to the calls and the time of their name."""
    job = train_loop(20 * MS)
    callback = job.callback("C.on_train_batch_end")
    callback.every(PERIOD, STEPS, dur=MS, start=30 * MS)
    callback.counted(50 * PERIOD, calls=1000, total=5 * MS)
    (row,) = job.view().named_times(Kind.CALLBACK)
    assert (row.calls, row.total_ns) == (98 + 1000, 98 * MS + 5 * MS)


def test_a_place_is_relative_to_the_jobs_directory() -> None:
    """Files below the working directory are told from there, others as they are, one line as one line."""
    view = train_loop(20 * MS).view()
    assert view.place(SCRIPT, 4, 9, "f").file == "train.py"
    assert view.place("/jobs/train.py", 4).file == "/jobs/train.py"
    assert (view.place(SCRIPT, 4, 4).end_line, view.place(SCRIPT, 4, 9).end_line) == (None, 9)
    assert view.source_of(f"{CWD}/other.py") is None


def test_without_steps_there_is_nothing() -> None:
    """A job without steps has empty answers, not errors."""
    view = nothing().view()
    assert (view.worker, view.steps, view.pipeline, view.anatomy) == (None, None, None, None)
    assert (view.samples, view.named_times(Kind.SAVE), view.hot_spots("call")) == ((), (), ())
    assert view.get(contention.build) is None
    assert (view.loop, view.call_line, view.get(hidden_wait.build), view.names) == (None, None, False, {})


def test_an_analysis_runs_once_for_each_view() -> None:
    """What was found is kept, None included; another view asks again."""
    view, other, asked = nothing().view(), nothing().view(), []

    def analysis(of: SessionView) -> None:
        asked.append(of)

    assert [view.get(analysis), view.get(analysis), other.get(analysis)] == [None, None, None]
    assert asked == [view, other]


def test_frameworks_are_those_of_the_process_that_makes_the_steps() -> None:
    """The first version of each framework counts."""
    job = train_loop(20 * MS)
    job.framework("tensorflow", "2.21.0")
    job.framework("keras", "3.15.1")
    job.framework("keras", "2.15.0")
    assert job.view().frameworks == {"tensorflow": "2.21.0", "keras": "3.15.1"}


def roles(job: Job) -> dict[int, str]:
    """The role of each hot statement, by its line."""
    view = job.view()
    return {s.statement.line: statement_role.build(view, s) for s in view.hot_spots("other-python") if s.statement}


def test_statements_have_their_roles() -> None:
    """By the stored source: what makes the batch feeds, what reads the loss uses, the rest is other."""
    job = sampled(before=30 * MS, after=30 * MS)
    tidy = (Frame(SCRIPT, "main", TIDY), Frame(SCRIPT, "tidy", 20))
    job.samples([i * PERIOD + 98 * MS for i in range(1, 50)], *tidy)
    assert roles(job) == {MAKE: "feeds", REPORT: "uses", TIDY: "other"}


def test_code_below_the_calls_own_statement_feeds_it() -> None:
    """User code that makes an argument within the call's statement feeds; the statement's own line is the call."""
    job = train_loop(50 * MS)
    main = Frame(SCRIPT, "main", CALL)
    job.samples([i * PERIOD + 70 * MS for i in range(1, 50)], main, Frame(SCRIPT, "load", 3))
    assert roles(job) == {CALL: "feeds"}
    alone = train_loop(50 * MS)
    alone.samples([i * PERIOD + 70 * MS for i in range(1, 50)], main)
    assert roles(alone) == {CALL: "call"}


def test_without_the_source_roles_are_unknown() -> None:
    """Where the source was not stored, nothing is guessed."""
    job = sampled(before=30 * MS)
    job.sources.clear()
    assert roles(job) == {MAKE: "unknown"}


def test_the_calls_line_is_found_by_samples() -> None:
    """Where the name line does not tell the call's line, the samples of calls do."""
    job = Job()
    job.function().every(PERIOD, STEPS, dur=50 * MS)
    job.samples([i * PERIOD + 20 * MS for i in range(1, 30)], Frame(SCRIPT, "main", CALL))
    job.samples([i * PERIOD + 70 * MS for i in range(1, 50)], Frame(SCRIPT, "main", REPORT))
    assert job.view().call_line == CALL


def test_time_without_the_step_thread_is_no_sample() -> None:
    """The weights of the samples add up to the time that they stand for."""
    job = train_loop(50 * MS)
    job.samples([i * PERIOD + 70 * MS for i in range(1, 50)], Frame(SCRIPT, "main", REPORT), dur=10 * MS)
    assert stack_samples.weight_of(job.view().samples) == 49 * 10 * MS
    assert stack_samples.weight_of(()) == 0


def test_the_call_of_fit_is_the_longest_loops() -> None:
    """The place of fit is the call in which the steps spend most time."""
    job = Job()
    job.execution("train").every(PERIOD, STEPS, dur=50 * MS, arg=1)
    job.loop("fit", line=50).at(0, 20 * PERIOD)
    job.loop("fit", line=60).at(20 * PERIOD + US, 80 * PERIOD)
    place = job.view().fit_place()
    assert place is not None
    assert (place.line, place.function) == (60, "main")
