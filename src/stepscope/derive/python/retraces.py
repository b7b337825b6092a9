"""Tracing within the steady steps, grouped by function and by the reason for tracing again.

Traces are recorded also in gaps of the duty cycle: steps of which only a part was observed count as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.model.log.events import Traced
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import I64, Bool


class RetraceGroup(Struct, frozen=True, kw_only=True):
    """Traces of one Python function for one reason, within the steady steps."""

    traces: tuple[Traced, ...]
    cause: str
    argument: str
    cost_ns: int
    """Wall time, within the steady steps, of tracing and of the extra time of the calls that traced."""
    traced_ns: int
    """Wall time of the tracing alone: the lower bound of its cost."""
    steps: int
    """Number of steps with such a trace, ``of`` so many."""
    of: int
    of_ns: int
    """Wall time of the steps."""

    @property
    def example(self) -> Traced:
        """The last trace of the group."""
        return self.traces[-1]


def build(steps: Steps) -> tuple[RetraceGroup, ...]:
    """Groups of repeated traces, the most costly first. A function's first trace does not count."""
    records = steps.worker.records
    windows = steps.whole_windows
    if len(windows[0]) == 0:
        return ()
    events = {t.id: t for t in steps.worker.all(Traced)}
    mine = (records.kind == Kind.TRACE) & (records.thread == steps.thread)
    loops = (records.kind == Kind.LOOP) & (records.thread == steps.thread)
    loop_spans = intervals.merge(records.start_ns[loops], records.start_ns[loops] + records.dur_ns[loops])
    in_loop = intervals.clipped_sum(records.start_ns, records.start_ns + records.dur_ns, loop_spans) > 0
    later = _in_later_calls(steps, loops)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for row in np.flatnonzero(mine):
        event = events.get(int(records.arg[row]))
        if event is None or event.cause in {"", "first"} or event.outer in events:
            continue
        if event.owner != "user" and in_loop[row] and not later[row]:
            continue  # what Keras sets up in each call of fit or predict belongs to that call
        key = (event.definition_key or event.function, event.cause, event.argument)
        groups.setdefault(key, []).append(int(row))
    found = []
    for (_, cause, argument), rows in groups.items():
        kept = np.array(rows)[_in_windows(steps, np.array(rows), windows)]
        if len(kept) == 0:
            continue
        alone = intervals.merge(records.start_ns[kept], records.start_ns[kept] + records.dur_ns[kept])
        starts, ends = widened(steps, kept)
        inside = intervals.clip(intervals.merge(starts, ends), windows)
        cost = intervals.total(inside)
        if cost <= 0:
            continue
        traced = [events[int(records.arg[r])] for r in kept]
        hit = np.unique(np.searchsorted(windows[0], inside[0], side="right"))
        found.append(
            RetraceGroup(
                traces=tuple(sorted(traced, key=lambda t: t.at)),
                cause=cause,
                argument=argument,
                cost_ns=cost,
                traced_ns=intervals.total(intervals.clip(alone, windows)),
                steps=len(hit),
                of=len(windows[0]),
                of_ns=intervals.total(windows),
            )
        )
    return tuple(sorted(found, key=lambda g: -g.cost_ns))


def _in_later_calls(steps: Steps, loops: Bool) -> Bool:
    """Which records lie in a step function of Keras on JAX that is not the first of its fit, evaluate or predict."""
    records = steps.worker.records
    found = np.zeros(len(records), bool)
    of_jax = {event.id for event in steps.worker.all(Traced) if event.owner == "jax"}
    traces = np.flatnonzero((records.kind == Kind.TRACE) & np.isin(records.arg, list(of_jax)))
    if len(traces) == 0:
        return found
    calls = np.flatnonzero((records.kind == Kind.EXECUTION) & (records.thread == steps.thread))
    calls = calls[np.argsort(records.start_ns[calls], kind="stable")]
    starts = np.sort(records.start_ns[loops])
    of_loop = np.searchsorted(starts, records.start_ns[calls], side="right")
    again = calls[1:][np.diff(of_loop) == 0]
    spans = intervals.merge(records.start_ns[again], records.start_ns[again] + records.dur_ns[again])
    found[traces] = intervals.overlapping(spans, records.start_ns[traces], records.start_ns[traces] + 1)
    return found


def _in_windows(steps: Steps, rows: I64, windows: Intervals) -> Bool:
    """Which traces begin within one of the steps."""
    lo, hi = windows
    starts = steps.worker.records.start_ns[rows]
    at = np.searchsorted(lo, starts, side="right") - 1
    inside: Bool = (at >= 0) & (starts < hi[np.maximum(at, 0)])
    return inside


def widened(steps: Steps, rows: I64) -> tuple[I64, I64]:
    """Each trace, widened to the call in which it happened, less the function's usual call time."""
    records = steps.worker.records
    starts = records.start_ns[rows]
    ends = starts + records.dur_ns[rows]
    calls = np.isin(records.kind, kinds_with(Trait.COMPILED)) & (records.thread == steps.thread)
    traced = np.flatnonzero(calls & ((records.flags & Flag.TRACED) != 0))
    plain = calls & ((records.flags & Flag.TRACED) == 0)
    if len(traced) == 0:
        return starts, ends
    order = traced[np.argsort(records.start_ns[traced], kind="stable")]
    call_starts = records.start_ns[order]
    call_ends = call_starts + records.dur_ns[order]
    at = np.searchsorted(call_starts, starts, side="right") - 1
    for i, call in enumerate(at):
        if call < 0 or call_ends[call] < ends[i]:
            continue
        same = plain & (records.name == records.name[order[call]])
        usual = int(np.median(records.dur_ns[same])) if same.any() else 0
        starts[i] = min(starts[i], call_starts[call])
        ends[i] = max(ends[i], call_ends[call] - usual)
    return starts, ends
