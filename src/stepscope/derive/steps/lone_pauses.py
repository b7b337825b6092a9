"""A pause that came once: a step lasts until the next one begins, so without care the mean step holds it.

A wait of nine seconds between two epochs, or one look at a plot, says nothing about any other step. A pause is what
follows a step's call for much longer than a step. One that comes again is a part of the work, and so is what every
training does between its epochs: evaluations and saving, though only one of them was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps
from stepscope.derive.steps.candidate import EVALUATIONS
from stepscope.derive.steps.step_candidates import LONG_GAP_FACTOR
from stepscope.model.log.events import Name
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.tables.records import I64, Bool

RHYTHM = 0.1
"""Share of the steps that are followed by pauses from which these are no pauses."""
WORK = 0.5
"""Share of a pause in evaluations and saving from which it is work."""
ALIKE = 0.5
"""Length, as a share of the pause, from which a time with too few calls in a gap is another one."""


def after(candidate: Candidate, starts: I64, ends: I64, observed: Bool) -> Bool:
    """The one step after which the program paused; none where that came again: bool[step]."""
    none = np.zeros(len(starts), bool)
    if not observed.any():
        return none
    records = candidate.worker.records
    over = np.minimum(starts + records.dur_ns[candidate.index], ends)
    usual = float(np.median((ends - starts)[observed]))
    long = observed & (ends - over > LONG_GAP_FACTOR * usual)
    long &= intervals.clipped_sum(over, ends, _work(candidate)) < WORK * (ends - over)
    if long.sum() != 1 or RHYTHM * observed.sum() <= 1:
        return none
    pause = int((ends - over)[long][0])
    return none if _in_gaps(candidate, usual, ALIKE * pause) else long


def _work(candidate: Candidate) -> Intervals:
    """When the thread evaluated or saved."""
    records = candidate.worker.records
    roles = [name.id for name in candidate.worker.all(Name) if name.role in EVALUATIONS]
    mine = ((records.kind == Kind.LOOP) & np.isin(records.name, roles)) | np.isin(
        records.kind, kinds_with(Trait.WRITES)
    )
    mine &= records.thread == candidate.thread
    begun = records.start_ns[mine]
    return intervals.merge(begun, begun + records.dur_ns[mine])


def _in_gaps(candidate: Candidate, usual: float, least: float) -> int:
    """How many times in gaps have too few calls for their length, by at least this long."""
    every = candidate.worker.gaps
    parts = gaps.counting(every, candidate.kind)
    lasted = parts.end_ns - parts.start_ns
    worked = np.minimum(lasted, (parts.calls * usual).astype(np.int64))
    busy = intervals.merge(parts.start_ns, parts.start_ns + np.where(2 * worked >= lasted, lasted, worked))
    idle = intervals.without(gaps.periods(every), busy)
    return int((idle[1] - idle[0] >= least).sum())
