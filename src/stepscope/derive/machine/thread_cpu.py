"""CPU that single threads of a process used and waited for, by the samples that the collector takes once a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.model.log.events import ThreadSeen

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.records import F64, I64, ThreadTable


class Use(Struct, frozen=True, kw_only=True):
    """CPUs that a thread ran on, and was ready for."""

    run: float
    ready: float


def rows(session: Session, worker: Worker, thread: int) -> ThreadTable:
    """The samples of one thread of a measured process, in order of time; none if it is not known to the kernel."""
    natives = {one.id: one.native for one in worker.all(ThreadSeen)}  # the newest of each
    table = session.threads
    return table.take((table.pid == worker.info.pid) & (table.native == natives.get(thread, 0)))


def used(table: ThreadTable, window: tuple[int, int]) -> dict[int, Use]:
    """CPU use by native id; a thread has a row only for each second in which it did something."""
    found = {}
    length = window[1] - window[0]
    for native in np.unique(table.native):
        mine = table.take(table.native == native)
        first = max(0, int(np.searchsorted(mine.at_ns, window[0], side="right")) - 1)
        last = int(np.searchsorted(mine.at_ns, window[1], side="right")) - 1
        if last >= first:
            run = int(mine.run_ns[last] - mine.run_ns[first]) / length
            found[int(native)] = Use(run=run, ready=int(mine.wait_ns[last] - mine.wait_ns[first]) / length)
    return found


def ready_per_run(session: Session, steps: Steps) -> float | None:
    """Time for which the thread of the steps was ready and others had the CPU, per time of running; None: not known."""
    mine = used(rows(session, steps.worker, steps.thread), steps.span)
    use = next(iter(mine.values()), None)
    return use.ready / use.run if use is not None and use.run else None


def waited(table: ThreadTable, at: I64) -> F64:
    """Share of the time in which one thread was ready and had no CPU, in the second of each moment.

    Args:
        table: rows of that thread, in order of time.
        at: moments, ns since session start. int64[moment].

    Returns:
        float64[moment], 0 to 1; those before the first row or after the last are of the nearest second; all 0 if there
        are less than two rows.
    """
    if len(table) <= 1:
        return np.zeros(len(at))
    ratio = np.diff(table.wait_ns) / np.maximum(1, np.diff(table.at_ns))
    second = np.clip(np.searchsorted(table.at_ns, at) - 1, 0, len(ratio) - 1)
    found: F64 = np.clip(ratio, 0.0, 1.0)[second]
    return found
