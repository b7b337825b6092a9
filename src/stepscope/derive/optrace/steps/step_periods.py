"""The steps of an op trace as periods: each lasts to the start of the next, so that the time between two is not lost.

A marker around the step's call leaves out what the loop does between two calls: taking the batch, callbacks. The period
includes it, as the steps of level 0 do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.steps import traced_steps
from stepscope.tables.blocks import take
from stepscope.tables.optrace import LineKind
from stepscope.wire.kinds import STEP_MARKER

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.steps.traced_steps import StepKind
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool

MAX_GAP_FACTOR = 20
"""A gap between two steps of this many median periods is a pause (another phase of the program), and part of no
step."""

MIN_OTHER_CALLS = 4
"""Calls of another compiled function between two steps that are a phase of their own, as an evaluation is, if most
steps are not followed by such."""


class Periods(Struct, frozen=True, kw_only=True):
    """Periods of the steps. Shapes: int64[step]. Disjoint, sorted by start; times in ns."""

    start_ns: I64
    end_ns: I64
    number: I64
    """Number given by the program, else counted from 0."""
    line: int
    """Index of the line that holds the steps; -1 if there is none."""
    plane: int
    """Index of its plane; -1 if there is none."""
    how: StepKind | None
    """How the steps were recognised; None: no steps, and the one period is the whole trace."""
    name: str
    numbered: bool = False
    """Whether the program, or its framework, gave the numbers, rising."""
    by_device: bool = False
    """Whether they are those of the work that was queued for a device or for other threads, behind the caller."""

    def __len__(self) -> int:
        """Number of periods."""
        return len(self.start_ns)

    @property
    def windows(self) -> Intervals:
        """The periods as intervals."""
        return self.start_ns, self.end_ns

    @property
    def pauses(self) -> Intervals:
        """Times between two steps that are part of none."""
        between = self.start_ns[1:] > self.end_ns[:-1]
        return self.end_ns[:-1][between], self.start_ns[1:][between]

    @property
    def dur_ns(self) -> I64:
        """Durations."""
        return self.end_ns - self.start_ns

    @property
    def mean_ns(self) -> float:
        """Mean duration."""
        return float(self.dur_ns.mean()) if len(self) else 0.0

    @property
    def typical(self) -> int:
        """Position of the step of median duration."""
        return int(np.argsort(self.dur_ns, kind="stable")[(len(self) - 1) // 2])


def build(trace: OpTrace) -> Periods:
    """The steps of a trace by the best evidence, or the whole trace as one period if it shows none."""
    found = traced_steps.find(trace)
    return of(trace, found[0]) if found else whole(trace)


def of(trace: OpTrace, steps: traced_steps.Steps) -> Periods:
    """Periods of some steps. The last step ends with its own event; it is left out if others remain, because what
    follows it is unknown. A capture of stepscope's own marks whole steps, so its last one is kept.
    """
    start, end = steps.start_ns, steps.start_ns + steps.dur_ns
    number = np.where(steps.number >= 0, steps.number, np.arange(len(steps)))
    if len(steps) > 1:
        follows = np.where(_paused(trace, steps), np.maximum(end[:-1], start[:-1] + 1), start[1:])
        last = len(start) if steps.name == STEP_MARKER else len(start) - 1
        end = np.append(np.minimum(follows, start[1:]), end[-1])[:last]
        start, number = start[:last], number[:last]
    return Periods(
        numbered=steps.numbered,
        start_ns=start,
        end_ns=end,
        number=number,
        line=steps.line,
        plane=trace.lines[steps.line].plane,
        how=steps.how,
        name=steps.name,
    )


def _paused(trace: OpTrace, steps: traced_steps.Steps) -> Bool:
    """Which steps are followed by something else than the next step: a long gap, or a loop over another function."""
    periods = np.diff(steps.start_ns)
    other = _other_calls(trace, steps) >= MIN_OTHER_CALLS
    if 2 * np.count_nonzero(other) >= len(other):  # what most steps are followed by belongs to the loop
        other[:] = False
    long: Bool = periods > MAX_GAP_FACTOR * float(np.median(periods))
    return long | other


def _other_calls(trace: OpTrace, steps: traced_steps.Steps) -> I64:
    """Calls of compiled functions that no step calls, between each step and the next: int64[gap]."""
    found = np.zeros(len(steps) - 1, np.int64)
    line = trace.lines[steps.line]
    if line.kind is not LineKind.THREAD:
        return found
    rows = line.first + np.flatnonzero(take(traced_steps.function_calls(trace), trace.events.meta[line.slice]))
    called, meta = trace.events.start_ns[rows], trace.events.meta[rows]
    step = np.searchsorted(steps.start_ns, called, side="right") - 1
    inside = (step >= 0) & (called < (steps.start_ns + steps.dur_ns)[step])
    other = ~inside & (step >= 0) & (step < len(found)) & ~np.isin(meta, meta[inside])
    np.add.at(found, step[other], 1)
    return found


def whole(trace: OpTrace) -> Periods:
    """One period from the first event to the last."""
    events = trace.events
    there = len(events) > 0
    first = np.array([int(events.start_ns.min())] if there else [], np.int64)
    last = np.array([int(events.end_ns.max())] if there else [], np.int64)
    return Periods(
        start_ns=first, end_ns=last, number=np.zeros(len(first), np.int64), line=-1, plane=-1, how=None, name=""
    )
