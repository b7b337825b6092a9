"""A fit over two epochs that stands still where the second one's iterator takes the place of the first one's."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.detectors.jobs import PERIOD
from tests.detectors.wait_jobs import look

from stepscope.wire.kinds import Flag

FIT = 50
"""The line of the script that calls fit."""
WAKES = 10_230 * MS
"""After 10, 20, 40 ... 5,120 ms: the tuning thread has slept ten times."""
KERAS = Frame("/usr/lib/python3/site-packages/keras/src/backend/tensorflow/trainer.py", "fit", 397, own=False)
EXECUTE = Frame("/usr/lib/python3/site-packages/tensorflow/python/eager/execute.py", "quick_execute", 53, own=False)
MAIN = Frame(SCRIPT, "main", FIT)
EACH = 200 * MS
"""From one sample of a waiting thread to the next."""


def standing(
    *,
    wait: int = 4 * S,
    ends: int = WAKES,
    after: int = 100,
    call: str = "futex",
    flags: int = 0,
    leaf: Frame = KERAS,
    exchanged: bool = True,
    called: bool = False,
    made: int = 0,
    traced: int = 0,
    line: int = 60,
) -> Job:
    """Steps of 100 ms; nothing is done in the ``wait`` before ``ends``.

    Args:
        wait: the time in which nothing is done.
        ends: its end, after the first iterator's first element.
        after: steps that follow.
        call: what a look at the thread found.
        flags: of the samples meanwhile: on the CPU or not.
        leaf: the line on which it waits.
        exchanged: whether a new iterator is made as it begins.
        called: whether a step's call goes on meanwhile.
        made: when the first iterator was made.
        traced: for how long the first call after it traces before it pulls.
        line: where the dataset was made.
    """
    job = Job()
    job.loop("fit", line=FIT).at(0, traced + ends + (after + 1) * PERIOD)
    train = job.execution("train")
    before = (made + traced + ends - wait) // PERIOD
    skipped = traced // PERIOD
    if traced:
        train.at(2 * MS, traced - 2 * MS)
        job.trace(3 * MS, traced - 4 * MS)
    train.every(PERIOD, before - skipped, dur=95 * MS, arg=1, start=skipped * PERIOD)
    begins = before * PERIOD
    end = made + traced + ends
    train.every(PERIOD, after, dur=95 * MS, arg=1, start=end)
    if called:
        train.at(begins, end - begins, arg=1)
    dataset = job.dataset("PrefetchDataset", line=line, batch=8)
    for at in (made, begins - 20 * MS, begins) if exchanged else (made,):
        job.iterator(dataset, batch=8, at=at)
    job.samples(range(50 * MS, begins, PERIOD), MAIN, EXECUTE, dur=PERIOD, flags=int(Flag.CPU))
    number = look(job, call)
    job.look = number
    job.samples(range(begins + 50 * MS, end, EACH), MAIN, leaf, dur=EACH, flags=flags)
    job.look = 0
    job.samples(range(end + 50 * MS, end + after * PERIOD, PERIOD), MAIN, EXECUTE, dur=PERIOD, flags=int(Flag.CPU))
    return job
