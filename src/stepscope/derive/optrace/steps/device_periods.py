"""Steps by their work on the device, where the host runs ahead of it.

A program that reads no result queues one step after the other: the host is done with a step long before the device is,
until the queue is full. The host's markers then say how fast steps are queued. Which work belongs to a step is known by
its launch: the call with the same correlation id lies within the step's marker. JAX on a CPU does the same with
its client's threads. A step lasts from its first work to the first work of the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.steps.host_runs import HostWork
from stepscope.derive.optrace.steps.step_periods import Periods

if TYPE_CHECKING:
    from stepscope.derive.optrace.device.launch_times import Launches
    from stepscope.derive.optrace.steps.traced_steps import Steps
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

_OF_HOST = frozenset({traced_steps.StepKind.MARKER, traced_steps.StepKind.CALL})
MIN_LAG = 0.1
"""Of a step: how long after a step of the host its work must go on for the host to be ahead."""


def follow(trace: OpTrace, periods: Periods, work: HostWork) -> Periods:
    """The periods of the device's work, if the host runs ahead of it; else the host's."""
    steps = next(iter(traced_steps.find(trace)), None)
    if steps is None or steps.how not in _OF_HOST or len(steps) < traced_steps.MIN_CALLS:
        return periods
    first, last = _bounds(steps, work)
    known = int(np.count_nonzero(first >= 0))  # the work of the last ones may follow the capture
    first, last, starts = first[:known], last[:known], steps.start_ns[:known]
    if known < traced_steps.MIN_CALLS or (first < 0).any() or (np.diff(first) <= 0).any():
        return periods
    usual = float(np.median(np.diff(first)))
    lag = last - (starts + steps.dur_ns[:known])
    if float(np.median(lag)) < MIN_LAG * usual:
        return periods
    paused = periods.end_ns[: known - 1] < starts[1:]
    number = np.where(steps.number >= 0, steps.number, np.arange(len(steps)))[: known - 1]
    return Periods(
        start_ns=first[:-1],
        end_ns=np.where(paused, last[:-1], first[1:]),
        number=number,
        line=periods.line,
        plane=periods.plane,
        how=periods.how,
        name=periods.name,
        numbered=steps.numbered,
        by_device=True,
    )


def of_launches(launches: Launches) -> HostWork:
    """The work whose launches are known."""
    known = launches.known
    return HostWork(
        called_ns=launches.called_ns[known], start_ns=launches.start_ns[known], end_ns=launches.end_ns[known]
    )


def _bounds(steps: Steps, work: HostWork) -> tuple[I64, I64]:
    """(start of the first, end of the last work launched in each step); -1 for a step without work."""
    step = np.searchsorted(steps.start_ns, work.called_ns, side="right") - 1
    within = (step >= 0) & (work.called_ns < (steps.start_ns + steps.dur_ns)[np.maximum(step, 0)])
    start, end, step = work.start_ns[within], work.end_ns[within], step[within]
    first = np.full(len(steps), -1, np.int64)
    last = np.full(len(steps), -1, np.int64)
    for one in range(len(steps)):
        mine = step == one
        if mine.any():
            first[one], last[one] = start[mine].min(), end[mine].max()
    return first, last
