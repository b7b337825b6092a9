"""When a job is said to hang: nothing happens for longer than before, nothing computes, and two looks agree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from stepscope.collector.agent_files.ring import RECORD_DTYPE
from stepscope.collector.recording.recent import Recent
from stepscope.model.session.session import WorkerInfo
from stepscope.native.waiting import look, work_meter
from stepscope.sidecar.hangs import Hangs
from stepscope.tables.hang import Hang, HangFrame, HangThread
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.live import Live

S = 1_000_000_000
OWN = HangFrame("/job/train.py", "main", 12, own=True)
LOCK = HangThread(pid=10, tid=10, state="S", call="futex", frames=(OWN,))
NEXT = HangThread(
    pid=10, tid=10, state="S", call="futex",
    frames=(HangFrame("/tensorflow/python/data/ops/iterator_ops.py", "__next__", 1), OWN),
)  # fmt: skip
SERVES = HangThread(pid=10, tid=10, state="S", call="accept4", on="listening TCP 0.0.0.0:80", frames=(OWN,))
SLEEPS = HangThread(pid=10, tid=10, state="S", call="clock_nanosleep", frames=(OWN,))


class Job:
    """A job of one process, watched second by second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recent = Recent(0)
        self.cores = 0.0
        self.thread = LOCK
        self.trains = True
        self.shown: list[Hang | None] = []
        self.kept: list[Hang] = []
        worker = SimpleNamespace(
            closed=False, info=WorkerInfo(key="10-1", pid=10), recent=self.recent, pid=10, types={"dataset"},
            alive=lambda: True,
        )  # fmt: skip
        sampling = SimpleNamespace(children=lambda: (frozenset(), []), tables=dict, processes=list)
        recording = SimpleNamespace(
            drainer=SimpleNamespace(workers={"10-1": worker}), sampling=sampling, job=None,
            manifest=SimpleNamespace(origin_monotonic_ns=0), keep_hang=lambda hang, _most: self.kept.append(hang),
        )  # fmt: skip
        live = SimpleNamespace(show_hang=self.shown.append)
        monkeypatch.setattr(look, "at_threads", lambda _pids: ((self.thread,), ""))
        monkeypatch.setattr(Hangs, "_trains", lambda _self: self.trains)
        self.hangs = Hangs(cast("Recording", recording), cast("Live", live))
        monkeypatch.setattr(work_meter.WorkMeter, "cores", lambda *_: self.cores)
        self.at = 0

    def steps(self, seconds: int) -> None:
        """Steps for so long."""
        for _ in range(seconds):
            rows = np.zeros(1, RECORD_DTYPE)
            rows["kind"], rows["start_ns"] = int(Kind.EXECUTION), self.at * S
            self.recent.add_records(rows)
            self.quiet(1)

    def quiet(self, seconds: int) -> None:
        """No work for so long."""
        for _ in range(seconds):
            self.hangs.tick(self.at * S, "running")
            self.at += 1


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that has made steps for ten seconds."""
    made = Job(monkeypatch)
    made.at = 1
    made.steps(10)
    return made


def test_a_lock_is_told_and_kept_until_work_goes_on(job: Job) -> None:
    """Told within half a minute with kind and line, once; the end is written to the same hang."""
    job.quiet(29)
    (told,) = job.shown
    assert told is not None
    assert (told.kind, told.state, told.line, told.since_ns) == ("lock", "hang", 12, 10 * S)
    job.quiet(60)
    assert len(job.shown) == 1
    job.steps(1)
    assert job.shown[-1] is None
    assert [bool(hang.until_ns) for hang in job.kept] == [False, True]
    assert job.kept[0].told_ns == job.kept[1].told_ns


def test_a_job_that_computes_does_not_hang(job: Job) -> None:
    """A first trace, a compilation, statistics: no step for minutes, and nothing is told."""
    job.cores = 1.0
    job.quiet(300)
    assert job.shown == []


def test_a_job_that_computes_and_waits_for_its_input_is_busy(job: Job) -> None:
    """It is told as such, never as a hang."""
    job.cores, job.thread = 1.0, NEXT
    job.quiet(29)
    (told,) = job.shown
    assert told is not None
    assert (told.kind, told.state) == ("dataset", "busy")


@pytest.mark.parametrize("thread", [SERVES, SLEEPS])
def test_a_server_and_a_sleep_do_not_hang(job: Job, thread: HangThread) -> None:
    """Who waits for requests has nothing to do; who sleeps wakes up by itself."""
    job.thread = thread
    job.quiet(300)
    assert job.shown == []


def test_a_job_that_only_predicts_may_wait_for_requests(job: Job) -> None:
    """A queue or a lock is then no hang, a worker process or the network is."""
    job.trains = False
    job.quiet(60)
    assert job.shown == []
    job.thread = HangThread(pid=10, tid=10, state="S", call="recvfrom", on="TCP 10.0.0.2:80", frames=(OWN,))
    job.quiet(20)
    assert [hang.kind for hang in job.shown if hang] == ["network"]


def test_a_pause_like_those_before_is_no_hang(job: Job) -> None:
    """The job did nothing for eleven seconds before, and went on: twice that is no hang yet, four times is."""
    job.quiet(11)
    job.steps(2)
    job.quiet(22)
    assert job.shown == []
    job.quiet(22)
    assert [hang.kind for hang in job.shown if hang] == ["lock"]


def test_two_looks_must_agree(job: Job) -> None:
    """Threads that are elsewhere at each look make progress that nothing records."""
    for line in range(100):
        job.thread = HangThread(
            pid=10, tid=10, state="S", call="futex", frames=(HangFrame("/a.py", f"f{line}", 1, own=True),)
        )
        job.quiet(1)
    assert job.shown == []
