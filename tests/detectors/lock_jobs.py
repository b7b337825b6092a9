"""Jobs with another Python thread beside the steps, and what samples of waits for the interpreter lock (GIL) found."""

from __future__ import annotations

from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, Job, S
from tests.detectors.jobs import CALL, PERIOD, STEPS, train_loop

from stepscope.wire.kinds import LockState

SECONDS = STEPS * PERIOD // S
OTHER = 7
"""The other thread."""
COUNT = Frame("/job/words.py", "count", 12)


def beside(
    percent: int,
    *,
    own: int = 20,
    waits: int = 30,
    elsewhere: int = 10,
    runs: int = 10,
    looks: bool = True,
    job: Job | None = None,
    frame: Frame = COUNT,
    threads: int = 1,
) -> Job:
    """A loop of ten seconds and a thread that counts words.

    Args:
        percent: of a CPU that the other thread uses.
        own: that the step's thread uses.
        waits: looks at the step's thread that found it waiting for the lock.
        elsewhere: that found it blocked in something else.
        runs: that found it running.
        looks: without them nobody looked.
        job: a loop of ten seconds, by default one that calls a compiled function.
        frame: where the other thread is.
        threads: that do the same, each with so much CPU.
    """
    job = job or train_loop(80 * MS)
    job.machine(SECONDS, got=(percent + own) / 100)
    job.thread_cpu(SECONDS, {MAIN: own, **{OTHER + i: percent for i in range(threads)}})
    states = [LockState.WAITS] * waits + [LockState.ELSEWHERE] * elsewhere + [LockState.RUNS] * runs
    for number, state in enumerate(states):
        at = S + number * PERIOD + 40 * MS
        job.samples([at], Frame(SCRIPT, "main", CALL), arg=state if looks else LockState.NOT_LOOKED)
        other = LockState.WAITS if looks and number % 2 else LockState.NOT_LOOKED
        for i in range(threads):
            job.samples([at], frame, thread=OTHER + i, arg=other)
    return job
