"""Which of the steps that several tasks traced at the same time are the same step of the job.

Tasks that step together leave each step together, so the ends of the same step lie near each other on one clock, and
all others a step away; and no task ends a step before all have ended the one before. Ends of tasks that do not wait for
each other have nothing to do with each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.records import I64

MAX_APART = 0.25
"""Median distance between the ends of the same step, in steps, up to which tasks step together. Ends of tasks that do
not are spread evenly: half of them lie further apart."""
VARIES = 1.0
"""Difference between the longest and the shortest step, in steps, from which the order of the ends suffices: on a full
machine a task leaves a step much later than another, and steps differ so much that the ends of tasks which do not wait
for each other soon get out of order."""
FAR = 2
"""Steps around the nearest ends that are tried."""


class SameSteps(Struct, frozen=True, kw_only=True):
    """The steps that all tasks have in common."""

    count: int
    first: Mapping[str, int]
    """Number of the first of them among those that each task traced; only tasks that step with the first one."""
    apart: tuple[str, ...]
    """Tasks whose steps do not end with those of the first one."""


def of(ends: Mapping[str, I64]) -> SameSteps:
    """Compare traced steps.

    Args:
        ends: by task, begin of the first traced step and end of each: int64[1 + steps], nanoseconds of one clock. The
            first task is what the others are compared with.
    """
    known = {name: times for name, times in ends.items() if len(times) > 1}
    if not known:
        return SameSteps(count=0, first={}, apart=())
    reference = next(iter(known))
    shifts = {name: _shift(known[reference], times) for name, times in known.items()}
    there = {name: shift for name, shift in shifts.items() if shift is not None}
    begin = max(there.values())
    end = min(shift + len(known[name]) - 1 for name, shift in there.items())
    return SameSteps(
        count=max(0, end - begin),
        first={name: begin - shift for name, shift in there.items()},
        apart=tuple(name for name, shift in shifts.items() if shift is None),
    )


def _shift(here: I64, there: I64) -> int | None:
    """Number, among the steps of ``here``, of the first of ``there``; None if they do not end together."""
    period = max(1.0, float(np.median(np.diff(here))))
    at = np.clip(np.searchsorted(here, there), 1, len(here) - 1)
    near = np.where(there - here[at - 1] <= here[at] - there, at - 1, at)
    outside = (there < here[0] - period) | (there > here[-1] + period)
    if outside.all():  # no step in common: how far away they are does not matter
        return round(float(np.median(there - here[0])) / period) + len(here)
    guess = round(float(np.median((near - np.arange(len(there)))[~outside])))
    waiting = [(apart, shift) for shift in range(guess - FAR, guess + FAR + 1) if (apart := _apart(here, there, shift))]
    apart, shift = min(waiting, default=(np.inf, 0))
    varies = np.ptp(np.diff(here)) >= VARIES * period
    return shift if apart <= (1.0 if varies else MAX_APART) * period else None


def _apart(here: I64, there: I64, shift: int) -> float:
    """Median distance of the ends of the same steps, at least 1 ns; 0 if they cannot be the same: of tasks that wait
    for each other, none ends a step before the other has ended the step before.
    """
    mine = np.arange(len(there)) + shift
    shared = (mine >= 0) & (mine < len(here))
    one, two = here[mine[shared]], there[shared]
    if not len(one) or (one[1:] < two[:-1]).any() or (two[1:] < one[:-1]).any():
        return 0.0
    return max(1.0, float(np.median(np.abs(one - two))))
