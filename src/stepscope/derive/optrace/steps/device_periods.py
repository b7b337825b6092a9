"""Steps by their work on the device, where the host runs ahead of it.

A program that reads no result queues one step after the other: the host is done with a step long before the device is,
until the queue is full. The host's markers then say how fast steps are queued. Which work belongs to a step is known by
its launch: the call with the same correlation id lies within the step's marker. A step lasts from its first
work to the first work of the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.steps.step_periods import Periods

if TYPE_CHECKING:
    from stepscope.derive.optrace.device.launch_times import Launches
    from stepscope.derive.optrace.steps.traced_steps import Steps
    from stepscope.model.records import I64
    from stepscope.model.session.optrace import OpTrace

MIN_LAG = 0.1
"""Of a step: how long after a step of the host its work must go on for the host to be ahead."""


def follow(trace: OpTrace, periods: Periods, launches: Launches) -> Periods:
    """The periods of the device's work, if the host runs ahead of it; else the host's."""
    steps = next(iter(traced_steps.find(trace)), None)
    if steps is None or steps.how is not traced_steps.StepKind.MARKER or len(steps) < traced_steps.MIN_CALLS:
        return periods
    first, last = _bounds(steps, launches)
    if (first < 0).any() or (np.diff(first) <= 0).any():
        return periods
    usual = float(np.median(np.diff(first)))
    lag = last - (steps.start_ns + steps.dur_ns)
    if float(np.median(lag)) < MIN_LAG * usual:
        return periods
    number = np.where(steps.number >= 0, steps.number, np.arange(len(steps)))
    return Periods(
        start_ns=first[:-1],
        end_ns=first[1:],
        number=number[:-1],
        line=periods.line,
        plane=periods.plane,
        how=periods.how,
        name=periods.name,
        by_device=True,
    )


def _bounds(steps: Steps, launches: Launches) -> tuple[I64, I64]:
    """(start of the first, end of the last work launched in each step); -1 for a step without work."""
    known = launches.known
    step = np.searchsorted(steps.start_ns, launches.called_ns[known], side="right") - 1
    within = (step >= 0) & (launches.called_ns[known] < (steps.start_ns + steps.dur_ns)[np.maximum(step, 0)])
    work, step = known[within], step[within]
    first = np.full(len(steps), -1, np.int64)
    last = np.full(len(steps), -1, np.int64)
    for one in range(len(steps)):
        mine = work[step == one]
        if len(mine):
            first[one], last[one] = launches.start_ns[mine].min(), launches.end_ns[mine].max()
    return first, last
