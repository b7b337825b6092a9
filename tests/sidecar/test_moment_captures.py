"""Captures that are kept only if something happened in them: tries, account and end, as ``Capturing`` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import Job as Written
from tests.sidecar.capture_job import KEY, MS, Job, S

from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.model.log.events import CaptureTaken
from stepscope.model.session.session import CaptureInfo
from stepscope.sidecar import capture_requests
from stepscope.sidecar.capturing import Capturing
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.model.session.session import Worker, WorkerInfo
    from stepscope.sidecar.live import Live

STEP = 10 * MS
DISCARDED = CaptureInfo(id="c", outcome="discarded", steps=10, cost_ns=20 * MS)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job with steps of which the records are known."""
    made = Job(run=tmp_path)
    records(made, saves=())
    return made


def records(job: Job, *, saves: tuple[int, ...]) -> None:
    """The job's recent past: 500 steps of 10 ms, and saves in some of them."""
    written = Written()
    step = written.execution("train")
    step.every(STEP, 500, dur=2 * MS)
    save = written.save()
    for number in saves:
        save.at(number * STEP + 3 * MS, 4 * MS)
    (worker,) = written.view().session.workers

    def recent(_: WorkerInfo) -> Worker:
        return worker

    job.drainer.workers[KEY].recent.worker = recent
    job.drainer.workers[KEY].recent.counts = {(int(Kind.EXECUTION), 1): 500, (int(Kind.FUNCTION), 7): 9}
    job.drainer.workers[KEY].answers = {}


def capturing(job: Job) -> Capturing:
    """What decides."""
    return Capturing(cast("Recording", job), cast("Live", job), 1)


def test_tries_are_repeated_until_one_is_kept(job: Job) -> None:
    """A discarded capture is counted and its cost shown; the next begins; a kept one ends the request."""
    deciding = capturing(job)
    request = job.ask(when="saving", force=True)
    deciding.tick(1 * S, "running")
    assert (job.state(request).state, job.state(request).when) == ("tracing", "saving")
    job.captures.done = DISCARDED
    deciding.tick(2 * S, "running")
    assert (len(job.captures.asked), job.state(request).tries, job.state(request).cost_ns) == (2, 1, 20 * MS)
    assert "1 try without it, discarded; cost 20 ms" in job.state(request).text
    job.captures.done = msgspec.structs.replace(
        DISCARDED, outcome="done", request=request, caught="save", when="saving"
    )
    deciding.tick(3 * S, "running")
    last = job.state(request)
    assert (last.state, last.caught, last.tries) == ("done", "save", 1)


def test_tries_overdraw_the_budget_and_wait(job: Job) -> None:
    """Half a second spent: the next try waits until the job has earned it."""
    deciding = capturing(job)
    request = job.ask(when="saving")
    deciding.tick(1 * S, "running")
    job.captures.done = msgspec.structs.replace(DISCARDED, cost_ns=500 * MS)
    deciding.tick(2 * S, "running")
    assert len(job.captures.asked) == 1
    assert "captures have used up the budget" in job.state(request).text
    assert job.state(request).tries == 1


def test_it_gives_up_after_its_wait_and_says_what_it_saw(job: Job) -> None:
    """The line has how often it happened, the tries and their cost, and what may help."""
    records(job, saves=(100, 150, 200))
    deciding = capturing(job)
    request = job.ask(when="saving", wait_s=5.0)
    deciding.tick(1 * S, "running")
    job.captures.done = msgspec.structs.replace(DISCARDED, cost_ns=500 * MS)
    deciding.tick(7 * S, "running")
    last = job.state(request)
    assert last.state == "failed"
    assert "not caught in 5 s: it happened 3 times, every 50 steps; 1 try without it" in last.text
    assert "--force" in last.text


def test_a_capture_is_aimed_at_what_comes_regularly(job: Job) -> None:
    """Saves every fifty steps: the process waits for one, skips most of the steps to the next, and traces past it."""
    records(job, saves=(100, 150, 200))
    deciding = capturing(job)
    job.ask(when="saving", force=True)
    deciding.tick(1 * S, "running")
    (asked,) = job.captures.asked
    assert asked.aim is not None
    assert asked.aim.pairs == ((int(Kind.SAVE), 2),)
    begins = asked.aim.skip + asked.margin + 1
    assert begins < 50 < begins + 1 + asked.steps
    assert asked.steps < 25


def test_a_short_distance_is_traced_as_a_whole(job: Job) -> None:
    """Saves every ten steps: a capture of more steps than that holds one, wherever it begins."""
    records(job, saves=tuple(range(100, 400, 10)))
    deciding = capturing(job)
    job.ask(when="saving", force=True)
    deciding.tick(1 * S, "running")
    assert (job.captures.asked[0].aim, job.captures.asked[0].steps >= 12) == (None, True)


def test_an_evaluation_does_not_end_it(job: Job) -> None:
    """All other calls that may be steps are named as usual: two of them in a row are no reason to leave."""
    deciding = capturing(job)
    job.ask(when="epoch-end", force=True)
    deciding.tick(1 * S, "running")
    assert (int(Kind.FUNCTION), 7) in job.captures.asked[0].usual


@pytest.mark.parametrize(("begin", "held"), [(95, True), (101, False)])
def test_it_is_kept_if_the_window_holds_the_moment(job: Job, begin: int, *, held: bool) -> None:
    """A window over the save's step holds it; one after it does not."""
    records(job, saves=(100,))
    deciding = capturing(job)
    job.ask(when="saving", force=True)
    deciding.tick(1 * S, "running")
    (asked,) = job.captures.asked
    assert asked.holds is not None
    answer = CaptureTaken(at=begin * STEP, id="c", recorded_ns=20 * STEP, steps=18, anchors=[(2, 1)], thread=1)
    job.drainer.workers[KEY].answers["c"] = answer
    assert bool(asked.holds(answer)) is held


def test_a_profiler_of_the_user_ends_it(job: Job) -> None:
    """A capture that gave way is not repeated: the user's own profiler would be disturbed again."""
    deciding = capturing(job)
    request = job.ask(when="saving", force=True)
    deciding.tick(1 * S, "running")
    job.captures.done = CaptureInfo(id="c", outcome="gave-way", text="the user's own profiler has started")
    deciding.tick(2 * S, "running")
    assert job.state(request).state == "failed"


@pytest.mark.parametrize(
    "fields",
    [
        {"when": "never"},
        {"when": "saving", "kind": "native"},
        {"when": "saving", "task": "x"},
        {"when": "saving", "count": 2},
        {"when": "saving", "every_s": 1.0},
        {"when": "XXX999"},
    ],
)
def test_what_does_not_go_with_a_condition_is_refused(fields: dict[str, object]) -> None:
    """One line each."""
    assert "--when" in capture_requests.problem(msgspec.convert({"id": "1", **fields}, CaptureAsk), 0)


def test_moments_that_are_far_apart_are_awaited_outside_of_the_process(job: Job) -> None:
    """Nearly two minutes between saves: no try is made long before the next is expected."""
    records(job, saves=(10, 490))
    worker = job.drainer.workers[KEY].recent.worker(None)
    worker.records.start_ns[:] = worker.records.start_ns * 25
    assert np.diff(worker.records.start_ns).min() >= 0
    deciding = capturing(job)
    request = job.ask(when="saving", force=True)
    deciding.tick(130 * S, "running")
    assert job.captures.asked == []
    assert "every 480 steps" in job.state(request).text
