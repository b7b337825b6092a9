"""System calls over all windows of a session, by thread, call and target."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.model.log.events import ThreadSeen
from stepscope.model.report.machine.system_calls import CallRow, SystemCallsSummary

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Session
    from stepscope.tables.system_calls import CallTotal, SystemCalls

MAX_ROWS = 40


def summary(session: Session, steps: Steps | None) -> SystemCallsSummary | None:
    """What was counted; None without a window.

    ``steps``: the job's steps; without them the calls of each main thread count as those of steps.
    """
    windows = session.system_calls
    if not windows:
        return None
    of_steps = _thread(steps) if steps is not None else None
    wall_ns = sum(window.wall_ns for window in windows)
    grouped: dict[tuple[int, int, str, str], list[CallTotal]] = defaultdict(list)
    for window in windows:
        for one in window.calls:
            grouped[window.pid, one.native, one.call, one.target].append(one)
    rows = [
        CallRow(
            pid=pid,
            native=native,
            thread=next((one.thread for one in of if one.thread), ""),
            of_steps=(pid, native) == (of_steps or (native, native)),
            call=call,
            target=target,
            count=sum(one.count for one in of),
            ratio=sum(one.total_ns + one.unfinished_ns for one in of) / wall_ns,
            total_ns=sum(one.total_ns for one in of),
            longest_ns=max(one.longest_ns for one in of),
            bytes=sum(one.bytes for one in of),
            failed=sum(one.failed for one in of),
        )
        for (pid, native, call, target), of in grouped.items()
    ]
    rows.sort(key=lambda row: (not row.of_steps, -row.ratio))
    return SystemCallsSummary(
        windows=len(windows),
        wall_ns=wall_ns,
        steps=sum(_within(steps, window) for window in windows) if steps is not None else 0,
        count=sum(row.count for row in rows),
        rows=tuple(rows[:MAX_ROWS]),
        full=any(window.full for window in windows),
    )


def _thread(steps: Steps) -> tuple[int, int] | None:
    """(pid, kernel's thread id) of the thread that makes the steps."""
    seen = (thread for thread in steps.worker.all(ThreadSeen) if thread.id == steps.thread)
    return next(((steps.worker.info.pid, thread.native) for thread in seen), None)


def _within(steps: Steps, window: SystemCalls) -> int:
    """Number of steps that end in a window."""
    return int(((steps.ends > window.at_ns) & (steps.ends <= window.at_ns + window.wall_ns)).sum())
