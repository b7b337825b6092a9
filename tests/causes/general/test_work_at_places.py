"""Which stacks are on the lines of a finding."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, PERIOD, REPORT, STEPS, TF, train_loop

from stepscope.causes.general import work_at_places
from stepscope.causes.general.work_at_places import WorkThere
from stepscope.derive import steps_view
from stepscope.tables.place import Place

MAIN_LINE = Frame(SCRIPT, "main", REPORT)
REPORTS = Frame(SCRIPT, "report", 8)
SORT = Frame("/usr/lib/site-packages/numpy/_core/fromnumeric.py", "argsort", 9, own=False)
KERAS = Frame(f"{TF.removesuffix('/tensorflow/python')}/keras/src/trainer.py", "Trainer.fit", 9, own=False)


def after(job: Job, *frames: Frame, thread: int = 1) -> Job:
    """A stack within the 30 ms after each call."""
    job.samples([i * PERIOD + 85 * MS for i in range(STEPS)], *frames, dur=30 * MS, thread=thread)
    return job


def called(job: Job) -> Job:
    """A stack in each call."""
    job.samples([i * PERIOD + 35 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL), dur=70 * MS)
    return job


def at(job: Job, line: int, function: str) -> WorkThere | None:
    """What the code at a line does."""
    view = steps_view.of(job.view())
    assert view is not None
    return work_at_places.of(view, Place(file="train.py", line=line, function=function))


def test_a_function_has_what_it_calls() -> None:
    """With its share of the steps: 30 of 100 ms."""
    found = at(after(called(train_loop(PERIOD - 30 * MS)), MAIN_LINE, REPORTS, SORT), 6, "report")
    assert found is not None
    assert found.share == pytest.approx(0.3, abs=0.01)
    assert [(part.entry, part.kind) for part in found.work.parts] == [("argsort", "sort")]


def test_the_loops_function_is_not_all_of_its_lines() -> None:
    """A place in the function that makes the steps is its line alone."""
    job = after(called(train_loop(PERIOD - 30 * MS)), MAIN_LINE)
    assert at(job, REPORT, "main") is not None
    assert at(job, REPORT + 1, "main") is None


def test_what_a_framework_calls_back_is_other_code() -> None:
    """The line of fit does not do what a callback does."""
    job = after(called(train_loop(PERIOD - 30 * MS)), MAIN_LINE, KERAS, REPORTS, SORT)
    assert at(job, REPORT, "main") is None
    assert at(job, 6, "report") is not None


def test_another_threads_work_is_found_without_a_share() -> None:
    """A generator's thread has no share of the steps."""
    found = at(after(train_loop(PERIOD - 30 * MS), REPORTS, SORT, thread=POOL), 6, "report")
    assert found is not None
    assert (found.own_thread, found.share) == (False, 0.0)


def test_the_steps_call_is_no_work_of_its_line() -> None:
    """Compute is not what the line does."""
    assert at(called(train_loop(PERIOD - 30 * MS)), CALL, "main") is None
