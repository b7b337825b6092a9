"""Waits for the interpreter lock: blocked less blocked elsewhere, and never more than others can have held it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, Job, S
from tests.detectors.jobs import CALL
from tests.detectors.lock_jobs import OTHER, SECONDS, beside

from stepscope.causes.host import gil_contention
from stepscope.causes.host.gil_contention import LockWaits
from stepscope.model.log.events import ThreadSeen
from stepscope.wire.kinds import Flag, Kind, LockState


def measured(job: Job) -> LockWaits:
    """What is said of the lock."""
    found = gil_contention.build(job.view(), 0.02)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("job", "ratio"),
    [
        (lambda: beside(70), 0.6),
        (lambda: beside(35), 0.35),  # the other thread cannot have held it for longer than it ran
        (lambda: beside(90, own=65), 0.15),  # nor was our thread blocked for longer
        (lambda: beside(70, own=85), 0.0),  # its own Python is what takes the time, although looks find it waiting
        (lambda: beside(70, waits=0, elsewhere=50, runs=0), 0.0),  # it waits for ops
        (lambda: beside(100, own=5, waits=50, elsewhere=0, runs=0), 0.95),
    ],
)
def test_the_wait_is_what_nothing_else_explains(job: object, ratio: float) -> None:
    """Blocked, less blocked elsewhere, within what others ran."""
    assert callable(job)
    found = measured(job())
    assert found.ratio == pytest.approx(ratio, abs=0.001)
    assert found.low <= found.ratio <= found.high


def test_of_the_wait_for_a_cpu_counts_what_waiting_is_of_the_looks() -> None:
    """Ready for 16 % of the time, and waiting in three of four looks that found it not blocked elsewhere; or none."""
    for waits, elsewhere, runs, expected in ((30, 10, 10, 0.44 + 0.12), (0, 10, 40, 0.44)):
        job = beside(95, waits=waits, elsewhere=elsewhere, runs=runs)
        mine = job.threads.native == 1000 + MAIN
        job.threads = msgspec.structs.replace(job.threads, wait_ns=np.where(mine, job.threads.at_ns // 100 * 16, 0))
        found = measured(job)
        assert found.ratio == pytest.approx(expected, abs=0.001)
        assert found.low < 0.44
        assert (found.high > 0.44 + 0.16) == (waits > 0)


def test_more_looks_say_more() -> None:
    """The interval shrinks with the number of looks, and holds the share."""
    few, many = (
        measured(beside(90, waits=12, elsewhere=4, runs=0)),
        measured(beside(90, waits=36, elsewhere=12, runs=0)),
    )
    assert (few.looks, many.looks) == (16, 48)
    assert few.ratio == pytest.approx(many.ratio, abs=0.01)
    assert few.high - few.low > many.high - many.low


def test_threads_of_one_function_are_one_holder() -> None:
    """A pool that runs the same function is told as one; who waits for the lock comes before who only uses a CPU."""
    job = beside(10)
    job.thread_cpu(SECONDS, {MAIN: 20, OTHER: 10, 21: 15, 22: 15, 23: 90})
    times = [S + i * 200 * MS for i in range(30)]
    for thread in (21, 22):
        job.samples(times, Frame("/job/pool.py", "parse", 5), thread=thread, arg=LockState.WAITS)
    job.samples(times, Frame("/job/pool.py", "multiply", 9), thread=23, arg=LockState.RUNS)
    found = measured(job)
    assert [(h.spot.function, len(h.threads), h.waits) for h in found.holders] == [
        ("parse", 2, 60),
        ("count", 1, 25),
        ("multiply", 1, 0),
    ]
    assert found.holders[0].cores == pytest.approx(0.3, abs=0.01)


def test_looks_in_gaps_count() -> None:
    """Jobs with gaps have the shortest steps, and little else is known of them."""
    job = beside(70)
    job.gap(7 * S, S, 10, Kind.FUNCTION)
    times = [7 * S + i * 100 * MS for i in range(1, 10)]
    job.samples(times, Frame(SCRIPT, "main", CALL), dur=0, arg=LockState.ELSEWHERE)
    found = measured(job)
    assert found.looks == 59
    assert found.elsewhere == pytest.approx(19 / 59)


def test_where_a_thread_only_waits_is_named_if_it_was_never_seen_at_work() -> None:
    """Samples for no time are of an idle thread: its code is named for want of a better place."""
    job = beside(70)
    wait = Frame("/job/words.py", "fetch", 30)
    job.samples([S + i * 100 * MS for i in range(80)], wait, thread=OTHER, dur=0)
    (holder,) = measured(job).holders
    assert (holder.spot.function, holder.samples) == ("count", 50)
    (holder,) = measured(beside(70, frame=wait)).holders
    assert (holder.spot.function, holder.lines) == ("fetch", (30,))


def test_samples_of_the_cpu_clock_are_no_looks() -> None:
    """Only the agent's thread looks."""
    job = beside(70)
    job.samples([3 * S + 33 * MS], Frame(SCRIPT, "main", CALL), arg=LockState.ELSEWHERE, flags=int(Flag.CPU))
    assert measured(job).looks == 50


def test_what_the_pipeline_calls_is_known_as_such() -> None:
    """A thread whose samples lie in calls of the pipeline's is told so."""
    job = beside(70)
    job.python("pydataset", "Words.__getitem__").every(100 * MS, 100, dur=90 * MS, thread=OTHER)
    assert [h.in_pipeline for h in measured(job).holders] == [True]
    assert [h.in_pipeline for h in measured(beside(70)).holders] == [False]


def test_a_thread_that_started_meanwhile_counts_from_its_first_row() -> None:
    """Threads have rows only where they did something."""
    job = beside(80)
    late = (job.threads.native != 1000 + OTHER) | (job.threads.at_ns >= 5 * S)
    job.threads = job.threads.take(late)
    (holder,) = measured(job).holders
    assert holder.cores == pytest.approx(0.8 * 4 / 8, abs=0.01)


def test_without_the_threads_nothing_is_said() -> None:
    """Where the step's thread has no samples of its CPU time, or they do not cover the steps, there is nothing."""
    job = beside(70)
    job.threads = job.threads.take(job.threads.native == 1000 + OTHER)
    assert gil_contention.build(job.view(), 0.02) is None
    job = beside(70)
    job.processes = job.processes.take(job.processes.at_ns < 2 * S)
    assert gil_contention.build(job.view(), 0.02) is None
    job = Job()
    job.event(ThreadSeen(id=MAIN, main=True))
    job.call(Kind.NEXT, "next")
    assert gil_contention.build(job.view(), 0.02) is None
