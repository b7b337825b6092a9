"""Times at which the steps of an op trace waited for their next batch.

A step waits while the op that takes the batch (GetNext) runs and nothing else of the step does. If that op has to wait,
an executor that starts late before it counts as waiting too: the op would only have waited longer. A GetNext that finds
its batch ready does not wait, and the time before it is not the input's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host.activity import Activity
from stepscope.tables.blocks import take

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

READY_NS = 300_000
"""A ready batch is taken in less time: the same measured bound as ``pipeline.MAX_HANDOVER_NS``."""


class Waits(Struct, frozen=True, kw_only=True):
    """Waits, times in ns."""

    start_ns: I64
    """int64[wait], disjoint and sorted; other work of the step at the same time is not yet taken out."""
    end_ns: I64
    event: I64
    """Rows of the GetNext events of the step's threads, outermost ones, sorted by start."""

    @property
    def intervals(self) -> Intervals:
        """Times at which steps may have waited."""
        return self.start_ns, self.end_ns


def build(trace: OpTrace, domain: Domain) -> Waits:
    """The waits of a trace."""
    events = trace.events
    rows = domain.rows(Activity.GET_NEXT)
    parent = domain.parent[rows]
    outer = (parent < 0) | (domain.activity[np.maximum(parent, 0)] != Activity.GET_NEXT)
    rows = rows[outer]
    rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
    start, end = events.start_ns[rows], events.end_ns[rows]
    called, began = _late_starts(trace, domain, start[end - start > READY_NS])
    lo, hi = intervals.merge(np.concatenate([start, called]), np.concatenate([end, began]))
    return Waits(start_ns=lo, end_ns=hi, event=rows)


def _late_starts(trace: OpTrace, domain: Domain, asked: I64) -> Intervals:
    """From the function call before each of some moments, rising, to the executor's first event for it."""
    if not len(asked):
        return intervals.empty()
    called, began = _starts(trace, domain, "FunctionRun"), _starts(trace, domain, "ExecutorState::Process")
    last = np.searchsorted(called, asked, side="right") - 1
    call = called[last[np.diff(last, prepend=-1) > 0]]
    first = np.searchsorted(began, call, side="left")
    known = first < len(began)
    return call[known], began[first[known]]


def _starts(trace: OpTrace, domain: Domain, name: str) -> I64:
    """Starts of the step's events of a name, rising."""
    named = np.zeros(len(trace.metas), np.bool_)
    named[trace.metas_named(name)] = True
    chosen = take(named, trace.events.meta)
    chosen &= domain.host
    chosen &= ~domain.of_input
    start = trace.events.start_ns[chosen]
    start.sort(kind="stable")  # made of sorted runs, one for each line
    return start
