"""When a condition of ``trace --when`` held among the records of a process."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MAIN, MS, Job
from tests.detectors.jobs import PERIOD, keras_fit, train_loop

from stepscope.derive.steps import moments
from stepscope.model.api import capture_when
from stepscope.tables.errors import UsageError
from stepscope.wire.kinds import Flag, Kind


def found(job: Job, word: str) -> moments.Moments:
    """The moments of a condition in a job."""
    view = job.view()
    assert view.steps is not None
    calls = moments.StepCalls(
        anchors=frozenset({(int(view.steps.kind), view.steps.call.id if view.steps.call else 0)}), thread=MAIN
    )
    return moments.find(capture_when.parse(word), view.steps.worker, calls)


@pytest.mark.parametrize("word", ["saving", "epoch-end", "retrace", "slow-step"])
def test_a_job_in_which_nothing_happens_has_no_moment(word: str) -> None:
    """Steps that are all alike hold none of them."""
    assert len(found(keras_fit(20 * MS), word)) == 0


def test_a_save_is_a_moment_wholly_within_its_window() -> None:
    """A window that cuts the save does not hold it; the text names it."""
    job = keras_fit(20 * MS)
    job.save().at(5 * PERIOD + 30 * MS, 40 * MS)
    saves = found(job, "saving")
    assert saves.within(5 * PERIOD, 6 * PERIOD) == "checkpoint (40 ms)"
    assert saves.within(5 * PERIOD + 31 * MS, 6 * PERIOD) == ""
    assert saves.within(0, 5 * PERIOD + 69 * MS) == ""


def test_epochs_end_with_keras_hook_else_with_the_iterator() -> None:
    """The hook where there is one; in a loop the end of what the thread pulls most from, by its flag."""
    job = keras_fit(20 * MS)
    hook = job.call(Kind.HOOK, "on_epoch_end", hook="on_epoch_end")
    hook.every(25 * PERIOD, 4, dur=MS, start=PERIOD)
    assert len(found(job, "epoch-end")) == 4
    loop = train_loop(20 * MS)
    nexts = loop.nexts().every(PERIOD, 100, dur=MS, start=30 * MS)
    nexts.at(50 * PERIOD + 90 * MS, MS, flags=Flag.END)
    ends = found(loop, "epoch-end")
    assert (len(ends), ends.flag) == (1, Flag.END)


def test_only_a_second_trace_is_a_retrace() -> None:
    """The first trace of a function is no moment."""
    job = train_loop(20 * MS)
    job.trace(2 * PERIOD + 30 * MS, MS, cause="first")
    job.trace(70 * PERIOD + 30 * MS, MS, cause="shape", argument="x")
    again = found(job, "retrace")
    assert again.start_ns.tolist() == [70 * PERIOD + 30 * MS]


def test_of_many_slow_steps_those_that_lost_most_are_looked_for() -> None:
    """Twenty steps of three medians lose less than two of thirty: the latter are the moments."""
    job = Job()
    step, at = job.function(), 0
    for number in range(200):
        step.at(at, MS)
        at += 300 * MS if number in {60, 160} else 30 * MS if number % 10 == 0 else 10 * MS
    slow = found(job, "slow-step")
    assert [int(ns) // MS for ns in slow.end_ns - slow.start_ns] == [300, 300]
    assert slow.longer_ns == 300 * MS


@pytest.mark.parametrize("text", ["", "save", "SAVING", "HST04", "hst004"])
def test_a_condition_that_is_none_is_refused_with_what_there_is(text: str) -> None:
    """The message lists the words."""
    with pytest.raises(UsageError, match="saving, epoch-end, retrace, slow-step"):
        capture_when.parse(text)


def test_a_code_is_a_condition() -> None:
    """Any code has the right form; whether a detector has it is not known here."""
    assert (capture_when.parse("HST004").code, capture_when.parse("saving").code) == ("HST004", "")
