"""How many steps a capture has that nobody waits for, what is told of one, and what follows it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from tests.sidecar.capture_job import KEY, MS, Job, S

from stepscope.model.session.session import CaptureInfo
from stepscope.sidecar.capturing import Capturing
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.live import Live


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has just begun."""
    return Job(run=tmp_path)


def capturing(job: Job) -> Capturing:
    """What decides."""
    return Capturing(cast("Recording", job), cast("Live", job), 1)


def finished(cost_ns: int, **fields: object) -> CaptureInfo:
    """A capture that is done."""
    return msgspec.structs.replace(CaptureInfo(id="c", outcome="done", steps=10, cost_ns=cost_ns), **fields)


def loaded(job: Job, events: float) -> Job:
    """Steps whose graphs were looked at."""
    job.events_per_step = events
    job.wants(("compute", "ops"))
    return job


@pytest.mark.parametrize(
    ("second", "events", "steps"),
    [
        (4, 100, []),  # 50 ms are not earned yet
        (6, 100, [10]),
        (6, 2_000, [4]),  # 7 ms each, and one more is begun: 60 ms earned, 20 of them for the trace itself
        (60, 2_000, [10]),
        (15, 28_000, []),  # a GRU of 200 turns: 98 ms each
        (25, 28_000, [1]),
        (60, 28_000, [4]),
    ],
)
def test_the_first_capture_has_as_many_steps_as_the_job_has_earned(
    job: Job, second: int, events: float, steps: list[int]
) -> None:
    """By what the graphs of a step say of its events: ten down to one, none where not even one is covered."""
    deciding = capturing(loaded(job, events))
    deciding.tick(second * S, "running")
    assert [asked.steps for asked in job.captures.asked] == steps


def test_long_steps_are_fewer(job: Job) -> None:
    """Recording slows steps down, so a capture of steps of seconds costs by their length."""
    assert job.steps is not None
    job.steps = SimpleNamespace(**{**vars(job.steps), "steady_ns": 200 * S})
    deciding = capturing(loaded(job, 100))
    deciding.tick(20 * S, "running")
    assert [asked.steps for asked in job.captures.asked] == [1]


def test_what_was_too_dear_is_told_at_the_end(job: Job) -> None:
    """With its expected cost, the budget, and the command that makes it; a capture that was made is none."""
    deciding = capturing(loaded(job, 28_000))
    deciding.tick(12 * S, "running")
    deciding.tick(13 * S, "ending")
    (said,) = job.notes
    assert "216 ms, but --budget 1% allowed less in the job's 13 s" in said
    assert "stepscope trace JOB --steps 1" in said
    assert job.captures.asked == []


def test_few_steps_are_followed_by_all_once_they_are_earned(job: Job) -> None:
    """A job that goes on gets its ten steps, once."""
    deciding = capturing(loaded(job, 2_000))
    deciding.tick(6 * S, "running")
    job.captures.done = finished(30 * MS, steps=4, work="training")
    deciding.tick(7 * S, "running")
    assert [asked.steps for asked in job.captures.asked] == [4]
    for second in range(8, 100):
        deciding.tick(second * S, "running")
        job.captures.done = finished(70 * MS, work="training") if job.captures.busy else None
    assert [asked.steps for asked in job.captures.asked] == [4, 10]


def test_an_evaluation_that_was_captured_is_followed_by_the_steps(job: Job) -> None:
    """Once, when the job is seen to train; as long as it evaluates there is nothing else to capture."""
    deciding = capturing(loaded(job, 100))
    deciding.tick(10 * S, "running")
    evaluated = (int(Kind.EXECUTION), 9)
    job.captures.done = finished(1 * MS, worker=KEY, work="evaluation", anchors=(evaluated,), asked_by="compute")
    deciding.tick(20 * S, "running")
    deciding.tick(30 * S, "running")
    assert [asked.by.word for asked in job.captures.asked] == ["compute", "compute"]
    job.captures.done = finished(1 * MS, worker=KEY, work="evaluation", anchors=(evaluated,), asked_by="compute")
    for second in range(40, 60):
        deciding.tick(second * S, "running")
    assert len(job.captures.asked) == 2


def test_a_capture_says_what_its_steps_are(job: Job) -> None:
    """Training, by Keras' role of the call, and the line of the user's that makes it."""
    deciding = capturing(loaded(job, 100))
    deciding.tick(10 * S, "running")
    (asked,) = job.captures.asked
    assert (asked.work, asked.place, asked.step_ns) == ("training", "train.py:41", 1 * MS)
