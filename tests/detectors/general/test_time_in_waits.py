"""GEN014 time-in-waits: its fixtures, when it is above information, and which remedies follow from a wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.detectors import wait_jobs
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import CALL, nothing, sampled
from tests.detectors.wait_jobs import FUTURE, OTHER, locked, moments, thread_counts, waiting

from stepscope.detectors.general import time_in_other_python
from stepscope.detectors.general.time_in_waits import DETECTOR
from stepscope.detectors.host import slow_python_in_loop
from stepscope.diagnosis.analyze import report_of

FIXTURES = Fixtures(
    firing=lambda: waiting(40 * MS, size=4096),
    expected=Expected(
        severity="high",
        cost=0.4,
        basis="modelled",
        where=(("train.py", 8), ("train.py", 45)),
        metrics=("wait_ratio", "looks_waiting"),
        title=("fetch waits 40 ms a step for 10.0.0.7:6379 (recvfrom, 4 KiB a call): 40 % of the time",),
        exposed="prediction",
        pipeline_stage="output-processing",
        remedy="batch-requests",
    ),
    silent=lambda: sampled(after=40 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: waiting(4 * MS),
    at=lambda: waiting(6 * MS),
    edges={"min_looks": Edge(below=lambda: waiting(40 * MS, looks=5), at=lambda: waiting(40 * MS, looks=6))},
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells what the thread waits for, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("job", "severity", "remedy"),
    [
        (lambda: waiting(40 * MS, "sleep"), "high", "do-not-sleep"),
        (lambda: waiting(15 * MS, "sleep"), "medium", "do-not-sleep"),
        (lambda: waiting(8 * MS, "sleep"), "info", "do-not-sleep"),
        (lambda: waiting(40 * MS, "pwrite64", "file", "/data/frames.bin"), "high", "write-larger"),
        (lambda: waiting(40 * MS, "fsync", "file", "/data/frames.bin"), "high", "sync-less-often"),
        (lambda: waiting(40 * MS, "read", "file", "/data/frames.bin"), "high", "read-ahead"),
        (lambda: waiting(40 * MS, "wait4", "process", "ffmpeg"), "high", "keep-process"),
        (lambda: waiting(40 * MS, "read", "pipe"), "info", "work-ahead"),
        (lambda: waiting(40 * MS, "recvfrom", "client", "10.0.0.9"), "info", "more-requests"),
        (lambda: waiting(40 * MS, "epoll_wait"), "info", "have-it-ready"),
        (locked, "info", "have-it-ready"),
    ],
)
def test_severity_and_remedy_follow_from_the_wait(job: Callable[[], Job], severity: str, remedy: str) -> None:
    """Above information is what has a name and is not somebody's request; the remedy is that of the wait."""
    (found,) = look(DETECTOR, job())[0]
    assert (found.severity, found.remedies[0].id) == (severity, remedy)


def test_a_sleep_is_lost_as_a_whole_and_other_waits_at_most() -> None:
    """Of a sleep the lower end is measured; of any other wait, part may be needed."""
    sleep, file = (
        look(DETECTOR, waiting(40 * MS, *what))[0][0].cost for what in (("sleep",), ("fsync", "file", "/data/a"))
    )
    assert (sleep.basis, file.basis) == ("measured", "modelled")
    assert (sleep.low > 0.3, file.low) == (True, 0.0)


def test_calls_and_bytes_come_from_the_kernels_counters() -> None:
    """How often the thread writes, and how much with each call."""
    job = thread_counts(
        waiting(40 * MS, "pwrite64", "file", "/data/frames.bin"), writes=8, written_bytes=8 * 4096, waits=9
    )
    (found,) = look(DETECTOR, job)[0]
    values = {e.metric: e.value for e in found.evidence}
    assert values["calls_per_step"] == pytest.approx(8, rel=0.02)
    assert values["bytes_per_call"] == 4096
    assert values["waits_per_step"] == pytest.approx(9, rel=0.02)
    assert "frames.bin (pwrite64; 8" in found.title


def test_the_thread_that_makes_the_step_wait_is_named() -> None:
    """For a queue, the line of the thread that runs meanwhile stands second, and is what to change."""
    job = locked()
    job.samples(moments(40 * MS), Frame("/job/features.py", "load_wav", 31), thread=OTHER)
    (found,) = look(DETECTOR, job)[0]
    assert "while load_wav runs on another thread" in found.title
    assert [(p.file, p.line) for p in found.where][:2] == [("train.py", 8), ("features.py", 31)]
    assert (found.severity, found.remedies[0].id) == ("high", "shorten-holder")


def test_threads_that_wait_for_each_other_hand_over() -> None:
    """If all others wait too and the wait has a timeout, it lasts until then: that is what to change."""
    for timed, severity, remedy in ((True, "high", "shorten-timeout"), (False, "info", "work-ahead")):
        job = locked(timed=timed)
        stream = Frame("/job/client.py", "stream", 3)
        job.samples(moments(40 * MS), stream, FUTURE, thread=OTHER, dur=0)
        (found,) = look(DETECTOR, job)[0]
        assert (found.severity, found.remedies[0].id) == (severity, remedy)
        assert "while the other threads wait too (stream)" in found.title


def test_a_wait_is_told_once() -> None:
    """What waits for a known thing is neither slow Python in the loop nor Python that takes time."""
    job = waiting(40 * MS)
    for other in (slow_python_in_loop.DETECTOR, time_in_other_python.DETECTOR):
        assert look(other, job)[0] == ()
        assert look(other, sampled(after=40 * MS))[0] != ()
    codes = [found.code for found in report_of(job.session()).findings]
    assert codes.count("GEN014") == 1
    assert not {"HST001", "GEN012", "INP004"} & set(codes)


def test_an_idle_service_is_neither_slow_python_nor_above_information() -> None:
    """A thread that waits for a queue that nobody fills yet has nothing to do: said once, as information."""
    found = [f for f in report_of(locked().session()).findings if f.code != "GEN013"]
    assert [(f.code, f.severity) for f in found] == [("GEN014", "info")]


def test_a_wait_for_another_process_stays_what_it_was() -> None:
    """What the other end of a pipe does for the step may be the step's work: the loop's line is told as before."""
    codes = {f.code for f in report_of(waiting(40 * MS, "read", "pipe").session()).findings}
    assert "HST001" in codes


@pytest.mark.parametrize(
    ("pauses", "told", "looks_at"),
    [
        ({40: 1500 * MS}, "sleeps 1.5 s in one of 98 steps", True),
        ({20: 4 * S, 60: 4 * S}, "sleeps 4 s in 2 of 98 steps", False),
        (dict.fromkeys(range(100), 200 * MS), "sleeps 200 ms a step", False),
    ],
)
def test_a_sleep_of_few_steps_is_none_of_each(pauses: dict[int, int], told: str, *, looks_at: bool) -> None:
    """Looks come many times a second, so a long wait in one step is known from a short one in each."""
    job, at, times = Job(), 0, []
    step = job.function(call_file=SCRIPT, call_line=CALL, call_function="main")
    for i in range(100):
        step.at(at, 100 * MS)
        times += list(range(at + 105 * MS, at + 100 * MS + pauses.get(i, 0), 50 * MS))
        at += 100 * MS + pauses.get(i, 0)
    wait = wait_jobs.look(job, "sleep")
    wait_jobs.looked(job, wait, times, wait_jobs.MAIN_LINE, wait_jobs.FETCH)
    (found,) = look(DETECTOR, job)[0]
    assert told in found.title
    assert ("look-at-that-step" in [one.id for one in found.remedies]) == looks_at
