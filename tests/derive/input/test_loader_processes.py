"""Which processes are a DataLoader's workers, and which of them work."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Job, S

from stepscope.collector.samplers import rivals
from stepscope.derive.input import loader_processes
from stepscope.model.log.events import ChildStarted
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import SHAPE_SHIFT, Flag

LINE = 30


def job(*, workers: int = 2, passes: int = 1) -> Job:
    """A loader's workers, started at its line in each pass; a process of the program's own besides."""
    made = Job(ended_ns=10 * passes * S)
    made.event(DataLoaderMade(id=1, workers=workers, file=SCRIPT, line=LINE))
    for number in range(passes * workers):
        at = number // workers * 10 * S
        started = ChildStarted(at=at, pid=500 + number, command="Process Process-1", file=SCRIPT, line=LINE)
        made.event(started)
    made.child(900, "python archive.py", line=LINE)
    made.child(901, "Process Process-9", line=77)
    return made


def uses(made: Job, pid: int, millis: int, seconds: range) -> None:
    """CPU time of a process in each of these seconds."""
    if "x" not in made.rival_names:
        made.rival_names.append("x")
    same = {"pid": pid, "name": 0, "child": 1, "cpu_ns": millis * 1_000_000, "interval_ns": S, "runnable": -1}
    made.rivals += [{"at_ns": second * S, **same} for second in seconds]


def idle(made: Job) -> int:
    """What is found of the loader."""
    session = made.session()
    (loader,) = session.workers[0].all(DataLoaderMade)
    return loader_processes.idle(session, session.workers[0], loader)


def test_workers_are_those_that_the_loader_s_line_started() -> None:
    """Another program that the line starts is none, nor is a process that another line starts."""
    assert loader_processes.pids(job(passes=2).session()) == {500, 501, 502, 503}


@pytest.mark.parametrize(
    ("batches", "expected"),
    [((40, 0), 1), ((40, 9), 1), ((40, 10), 0), ((30, 0, 30, 2), 2), ((9, 0), 0)],  # of the last, too few to tell
)
def test_a_worker_that_made_hardly_a_batch_has_no_work(batches: tuple[int, ...], expected: int) -> None:
    """Whatever CPU time the workers take: they may sleep, or wait for a disk."""
    made = job(workers=len(batches))
    taken = made.nexts()
    for worker, count in enumerate(batches):
        taken.every(10 * MS, count, dur=MS, arg=1, start=worker * MS, flags=1 + worker << SHAPE_SHIFT)
    taken.every(10 * MS, 50, dur=MS, arg=1, start=9 * MS)
    assert idle(made) == expected


@pytest.mark.parametrize("workers", [2, 4])
def test_one_batch_in_many_says_nothing_of_the_workers(workers: int) -> None:
    """They take turns: where one batch in four is recorded, all of these are of one worker."""
    made = job(workers=workers)
    flags = 1 << SHAPE_SHIFT | Flag.THINNED
    made.nexts().every(4 * MS, 200, dur=MS, arg=1, start=MS, flags=flags)
    assert idle(made) == 0
    for worker in range(workers):
        made.nexts().every(4 * MS, 9, dur=MS, arg=1, start=worker * MS, flags=1 + worker << SHAPE_SHIFT)
    assert idle(made) == 0


def test_threads_of_workers_are_those_of_the_looks_at_them() -> None:
    """Not of other processes of the job, nor of seconds in which nobody looked."""
    made = job()
    for pid, found in ((500, (2, 2, -1)), (501, (1, -1, 3)), (900, (9, 9, 9))):
        uses(made, pid, 900, range(1, 4))
        for row, count in zip(made.rivals[-3:], found, strict=True):
            row["runnable"] = count
    session = made.session()
    assert loader_processes.threads(session, 0, 10 * S) == 2.0
    assert loader_processes.threads(session, 3 * S, 10 * S) == -1.0


def test_what_the_sampler_leaves_out() -> None:
    """The bounds of a process that has no row are the sampler's."""
    assert (loader_processes.MOST_ROWS, loader_processes.LEAST_NS) == (rivals._KEEP, rivals._MIN_CPU_NS)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (200, 0, 1),
        (200, 40, 1),
        (200, 60, 0),  # over a quarter
        (200, 190, 0),
        (18, 0, 0),  # too little: one without a row may have used up to 5 ms
        (0, 0, 0),
    ],
)
def test_a_worker_is_idle_against_the_busiest(first: int, second: int, expected: int) -> None:
    """By their CPU time."""
    made = job()
    for pid, millis in ((500, first), (501, second)):
        if millis:
            uses(made, pid, millis, range(1, 8))
    assert idle(made) == expected


@pytest.mark.parametrize(("others", "expected"), [(6, 1), (7, 0)])
def test_a_worker_may_be_hidden_by_busier_processes(others: int, expected: int) -> None:
    """Only the eight busiest have rows: where all are taken, one without a row may have used as much as the least."""
    made = job()
    uses(made, 500, 100, range(1, 8))
    for number in range(others):
        uses(made, 700 + number, 300, range(1, 8))
    assert idle(made) == expected


def test_a_worker_that_works_in_one_pass_is_not_idle() -> None:
    """The fewest of all passes count."""
    made = job(passes=2)
    uses(made, 500, 200, range(1, 8))
    uses(made, 502, 200, range(11, 18))
    uses(made, 503, 200, range(11, 18))
    assert idle(made) == 0
