"""The user's own profiler: which steps it recorded, and how much longer these took than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.model.log.events import UserProfiler

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Worker

LEAST_STEPS = 20
"""Minimum number of steps of either kind: with fewer the cost of recording is unknown."""


class ProfilerUse(Struct, frozen=True, kw_only=True):
    """Known facts about a profiler that recorded."""

    steps: int
    """Steady steps that it recorded, plus as large a part of the steps that were only counted."""
    time_ratio: float
    """Share of the steady time."""
    wall_ns: int
    """From the first steady step to the end of the last."""
    slower: float | None
    """Median recorded step over that of the others, less one; None: there are too few of them."""
    stop_ns: int
    """Time for writing the records when it was stopped."""
    started: UserProfiler
    """The first start of the profiler."""


def build(steps: Steps) -> ProfilerUse | None:
    """None if no steady step was recorded."""
    started = [told for told in steps.worker.all(UserProfiler) if told.action == "start"]
    if not started or not steps.steady_count:
        return None
    on = _periods(steps.worker, int(steps.ends[-1]))
    starts, ends = steps.windows
    inside = intervals.clipped_sum(starts, ends, on)
    if not inside.any():
        return None
    usual = steps.recurring[steps.steady]
    took = ends - starts
    recorded, free = took[usual & (inside == took)], took[usual & (inside == 0)]
    known = min(len(recorded), len(free)) >= LEAST_STEPS
    ratio = float(inside.sum() / steps.steady_ns)
    first, last = steps.span
    return ProfilerUse(
        steps=int(np.count_nonzero(inside)) + round(ratio * steps.skipped),
        time_ratio=ratio,
        wall_ns=last - first,
        slower=float(np.median(recorded) / np.median(free)) - 1 if known else None,
        stop_ns=sum(told.dur_ns for told in steps.worker.all(UserProfiler)),
        started=started[0],
    )


def _periods(worker: Worker, until: int) -> Intervals:
    """Times in which it recorded; a profiler that was not stopped recorded until ``until``."""
    starts, ends = [], []
    began: int | None = None
    for told in worker.all(UserProfiler):
        if told.action == "start" and began is None:
            began = told.at
        elif told.action == "failed" and began == told.at:
            began = None
        elif told.action == "stop" and began is not None:
            starts.append(began)
            ends.append(told.at)
            began = None
    if began is not None and began < until:
        starts.append(began)
        ends.append(until)
    return intervals.merge(np.array(starts, np.int64), np.array(ends, np.int64))
