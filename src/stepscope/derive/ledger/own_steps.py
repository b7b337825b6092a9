"""How much of each step is the step itself: a step lasts until the next one, whatever the program does in between.

A step's own time ends where the next begins, or before that: where the loop that makes the steps ends, where Keras ends
an epoch, where an evaluation begins, or shortly after its call if the program then turns to something else for much
longer than a step. What follows lies between steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import epochs, gaps
from stepscope.derive.steps.candidate import EVALUATIONS
from stepscope.derive.steps.lone_pauses import RHYTHM
from stepscope.derive.steps.step_candidates import LONG_GAP_FACTOR
from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import I64, Bool


LEAST_NS = 20_000_000
"""Shorter pauses are no other work: a thread that loses its CPU to others misses a few of the scheduler's slices."""


class OwnSteps(Struct, frozen=True, kw_only=True):
    """The steps of a thread, without what lies between them. Shapes: [step]."""

    steps: Steps
    ends: I64
    """End of each step's own time."""
    first: int
    """Number of the first steady step; those before it are first steps."""
    seen: Bool
    """Whether the step was observed, and has any own time."""
    begin_ns: int
    """When the first steps begin: with the loop of Keras that makes them, if there is one."""

    @property
    def warm_up(self) -> Intervals:
        """The first steps."""
        early = self.seen & (np.arange(len(self.steps)) < self.first)
        starts, ends = self.steps.starts[early], self.ends[early]
        if not len(starts):
            return intervals.empty()
        return intervals.merge(np.append(self.begin_ns, starts), np.append(starts[0], ends))

    @property
    def later(self) -> Bool:
        """Observed steps after the first ones."""
        found: Bool = self.seen & (np.arange(len(self.steps)) >= self.first)
        return found


def of(steps: Steps) -> OwnSteps:
    """The own time of each step."""
    loops = holding_loops(steps)
    breaks = np.sort(np.concatenate([loops[1], epochs.ends_of(steps), evaluations(steps.worker, steps)[0]]))
    at = np.searchsorted(breaks, steps.starts, side="left")
    limits = np.append(breaks, np.iinfo(np.int64).max)[at]
    ends = np.maximum(steps.starts, np.minimum(steps.ends, limits))
    seen = ~steps.unobserved & (ends > steps.starts)
    ends = _without_pauses(steps, ends, seen)
    begun = int(steps.starts[0])
    holds = (loops[0] <= begun) & (begun < loops[1])
    return OwnSteps(
        steps=steps,
        ends=ends,
        first=int(np.flatnonzero(steps.steady)[0]) if steps.steady.any() else len(steps),
        seen=seen,
        begin_ns=int(loops[0][holds][0]) if holds.any() else begun,
    )


def _without_pauses(steps: Steps, ends: I64, seen: Bool) -> I64:
    """The ends, with those of steps after which the program does something else for long soon after their calls; but
    what it does after every few steps belongs to the loop, such as a wait for batches that come several at a time."""
    if not seen.any():
        return ends
    calls_over = np.minimum(np.maximum(steps.call_ends, steps.starts), ends)
    usual = float(np.median((ends - steps.starts)[seen]))
    tail = int(np.median((ends - calls_over)[seen]))
    long = seen & (ends - calls_over > max(LEAST_NS, LONG_GAP_FACTOR * usual))
    if long.sum() >= RHYTHM * seen.sum():
        return ends
    return np.where(long, np.minimum(ends, calls_over + tail), ends)


def holding_loops(steps: Steps) -> Intervals:
    """Outermost calls of Keras on the thread that hold several steps each, disjoint and sorted."""
    if steps.kind != Kind.EXECUTION:
        return intervals.empty()
    records = steps.worker.records
    mine = (records.kind == Kind.LOOP) & (records.thread == steps.thread) & ((records.flags & Flag.NESTED) == 0)
    starts = records.start_ns[mine]
    loops = intervals.merge(starts, starts + records.dur_ns[mine])
    held = np.searchsorted(steps.starts, loops[1]) - np.searchsorted(steps.starts, loops[0])
    several = (held > 1) | intervals.overlapping(gaps.periods(steps.worker.gaps), *loops)
    return loops[0][several], loops[1][several]


def evaluations(worker: Worker, steps: Steps | None, threads: tuple[int, ...] = ()) -> Intervals:
    """Evaluations by Keras on the thread of the steps, unless the steps are theirs, or on other threads."""
    names = names_of(worker)
    mine = [number for number, name in names.items() if name.role in EVALUATIONS]
    if steps is not None and steps.call is not None and steps.call.role in EVALUATIONS:
        return intervals.empty()
    records = worker.records
    on = np.isin(records.thread, threads or ((steps.thread,) if steps is not None else ()))
    found = (records.kind == Kind.LOOP) & np.isin(records.name, mine) & on
    starts = records.start_ns[found]
    return intervals.merge(starts, starts + records.dur_ns[found])
