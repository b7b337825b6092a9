"""The worker processes of PyTorch's DataLoaders: which they are, and which of them work.

A worker is started at the line that takes the loader's batches. Of its work the batches are known that it made, and its
CPU time while it is among the busiest processes of a second (``RivalTable``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.log.events import ChildStarted
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import SHAPE_SHIFT, Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.records import I64, RivalTable

MOST_ROWS, LEAST_NS = 8, 5_000_000
"""Rows of a second, and the CPU time without which a process has none (``collector.samplers.rivals``)."""
IDLE_RATIO = 0.25
"""Of the busiest worker's batches or CPU time: a worker that has less CPU time gives hardly a batch, as it has the same
work for each."""
MIN_BATCHES = 8
"""For each worker, from which on their numbers are no chance."""
_STARTED = "Process"
"""Ending of the class names in the commands of multiprocessing's children."""


def started(worker: Worker, loaders: Iterable[DataLoaderMade]) -> list[ChildStarted]:
    """The workers of these loaders, in the order of their start."""
    lines = {(made.file, made.line) for made in loaders if made.workers and made.file}
    return [
        child
        for child in worker.all(ChildStarted)
        if (child.file, child.line) in lines and child.command.partition(" ")[0].endswith(_STARTED)
    ]


def pids(session: Session) -> frozenset[int]:
    """The workers of all loaders of the job."""
    return frozenset(child.pid for worker in session.workers for child in started(worker, worker.all(DataLoaderMade)))


def cores(session: Session, lo: int, hi: int) -> float:
    """CPUs that the workers took between two moments, while they were among the busiest processes."""
    table = session.rivals
    mine = np.isin(table.pid, list(pids(session))) & (table.at_ns > lo) & (table.at_ns <= hi)
    return float(table.cpu_ns[mine].sum()) / max(1, hi - lo)


def threads(session: Session, lo: int, hi: int) -> float:
    """Threads of a worker that could run at a moment, on average over the looks at which it worked; -1: not known."""
    table = session.rivals
    mine = np.isin(table.pid, list(pids(session))) & (table.at_ns > lo) & (table.at_ns <= hi) & (table.runnable >= 0)
    return float(table.runnable[mine].mean()) if mine.any() else -1.0


def made_by(worker: Worker, made: DataLoaderMade) -> I64:
    """Batches by the worker that made them, in all passes, of those whose records say it. int64[worker].

    Not of one in many that are recorded: workers take turns, so that those may all be of one.
    """
    records = worker.records
    mine = (records.kind == Kind.NEXT) & (records.arg == made.id) & ((records.flags & Flag.THINNED) == 0)
    numbers = (records.flags[mine] >> SHAPE_SHIFT) - 1
    return np.bincount(numbers[(numbers >= 0) & (numbers < made.workers)], minlength=made.workers)


def idle(session: Session, worker: Worker, made: DataLoaderMade) -> int:
    """How many of a loader's workers had hardly any work while another one worked; 0 if that is not known."""
    batches = made_by(worker, made)
    if batches.sum() >= MIN_BATCHES * made.workers:
        return int((batches < IDLE_RATIO * batches.max()).sum())
    children = started(worker, [made])
    passes = [children[at : at + made.workers] for at in range(0, len(children), made.workers)]
    edges = [*(each[-1].at for each in passes), session.manifest.ended_ns or int(session.rivals.at_ns.max(initial=0))]
    found = [
        _idle(session.rivals, [child.pid for child in each], lo, hi)
        for each, lo, hi in zip(passes, edges, edges[1:], strict=False)
        if len(each) == made.workers
    ]
    return min((count for count in found if count is not None), default=0)


def _idle(table: RivalTable, workers: list[int], lo: int, hi: int) -> int | None:
    """The same in one pass; None if none of them used enough CPU to tell."""
    table = table.take((table.at_ns > lo) & (table.at_ns <= hi))
    most = dict.fromkeys(workers, 0)
    busiest = dict.fromkeys(workers, 0)
    for at in np.unique(table.at_ns):
        used = table.take(table.at_ns == at)
        if not np.isin(used.pid, workers).any():
            continue
        left_out = int(used.cpu_ns.min()) if len(used) >= MOST_ROWS else LEAST_NS
        by_pid = dict(zip(used.pid.tolist(), used.cpu_ns.tolist(), strict=True))
        for pid in workers:
            busiest[pid] += by_pid.get(pid, 0)
            most[pid] += by_pid.get(pid, left_out)
    first = max(busiest.values(), default=0)
    if first * IDLE_RATIO < LEAST_NS:
        return None
    return sum(use < IDLE_RATIO * first for use in most.values())
