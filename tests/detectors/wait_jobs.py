"""Jobs whose thread waits for something after each call of the step, and what looks found then."""

from __future__ import annotations

from collections.abc import Sequence

from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, PERIOD, REPORT, STEPS, train_loop

from stepscope.model.log.waits import ThreadCounts, WaitSeen
from stepscope.wire.kinds import Flag

MAIN_LINE = Frame(SCRIPT, "main", REPORT)
FETCH = Frame(SCRIPT, "fetch", 8)
OTHER = 7
"""Another thread of Python's."""
QUEUE = Frame("/usr/lib/python3.11/queue.py", "Queue.get", 171, own=False)
FUTURE = Frame("/usr/lib/python3.11/concurrent/futures/_base.py", "Future.result", 451, own=False)
SOCKET = ("recvfrom", "socket", "10.0.0.7:6379")


def look(job: Job, call: str, kind: str = "", target: str = "", *, size: int = 0, timed: bool = False) -> int:
    """The id of what looks at a thread found."""
    made = WaitSeen(id=job.new_id("wait"), call=call, kind=kind, target=target, bytes=size, timed=timed)
    job.event(made)
    return made.id


def looked(job: Job, wait: int, times: Sequence[int], *frames: Frame, dur: int = 50 * MS, thread: int = MAIN) -> None:
    """Samples with a look; ``wait``: what it found."""
    job.look = wait
    job.samples(times, *frames, dur=dur, thread=thread)
    job.look = 0


def waiting(
    wait: int,
    *what: str,
    looks: int = STEPS,
    frames: Sequence[Frame] = (MAIN_LINE, FETCH),
    clock: bool = True,
    size: int = 0,
    timed: bool = False,
) -> Job:
    """A step that computes on its own thread, and then waits.

    Args:
        wait: time of each step in the wait; the rest of the 100 ms is the call.
        what: call, kind and target of the looks.
        looks: steps with a look; those that are left have a sample without one.
        frames: where the thread waits.
        clock: the thread has a CPU clock.
        size: bytes that the call was given.
        timed: whether the wait ends by itself.
    """
    job = train_loop(PERIOD - wait)
    number = look(job, *(what or SOCKET), size=size, timed=timed)
    flags = int(Flag.CPU) if clock else 0
    call = [i * PERIOD + (PERIOD - wait) // 2 for i in range(STEPS)]
    job.samples(call, Frame(SCRIPT, "main", CALL), dur=PERIOD - wait, flags=flags)
    after = moments(wait)
    looked(job, number, after[:looks], *frames, dur=wait)
    job.samples(after[looks:], *frames, dur=wait)
    return job


def moments(wait: int) -> list[int]:
    """When ``waiting`` looks."""
    return [(i + 1) * PERIOD - wait // 2 for i in range(STEPS)]


def locked(wait: int = 40 * MS, *, timed: bool = False) -> Job:
    """A thread that waits for a queue."""
    return waiting(wait, "futex", frames=(MAIN_LINE, FETCH, QUEUE), timed=timed)


def thread_counts(job: Job, **per_step: int) -> Job:
    """Counters of the step's thread, read once a second."""
    for second in range(1, 10):
        values = {name: 10 * second * value for name, value in per_step.items()}
        job.event(ThreadCounts(at=second * 10 * PERIOD, thread=MAIN, **values))
    return job
