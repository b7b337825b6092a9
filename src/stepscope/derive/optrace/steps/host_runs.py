"""Runs of JAX's compiled programs on the CPU, with the calls that queued them.

JAX's client for CPUs runs ahead as one for devices does: the call returns at once, and the program runs on threads of
the client. Every event of a run has its number (``run_id``): any number, below zero too, since each program counts from
another one in some versions. The calls have none; runs begin in the order of their calls.

Source: openxla/xla, ``xla/pjrt/cpu/cpu_client.cc`` and ``xla/pjrt/common_pjrt_client.cc`` (jaxlib 0.10.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.tables.blocks import take
from stepscope.tables.optrace import LineKind, PlaneKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

_QUEUES = "::ExecuteHelperOnSingleDevice"
_OLDER_QUEUES = "::ExecuteHelper"
"""Ends of the names of the calls that queue a run; the client's name before it has changed over the years."""


class HostWork(Struct, frozen=True, kw_only=True):
    """Pieces of work with the time at which each was called for. Shapes: [work]."""

    called_ns: I64
    start_ns: I64
    end_ns: I64


def build(trace: OpTrace) -> HostWork | None:
    """The runs on the host; None if it has none, or their calls are not known."""
    rows, numbers = trace.ints_of(StatName.RUN_ID)
    called = _calls(trace)
    if not len(rows) or not len(called):
        return None
    order = np.argsort(numbers, kind="stable")
    first = np.unique(numbers[order], return_index=True)[1]
    start = np.minimum.reduceat(trace.events.start_ns[rows][order], first)
    end = np.maximum.reduceat(trace.events.end_ns[rows][order], first)[np.argsort(start, kind="stable")]
    start = np.sort(start)
    both = min(len(start), len(called))
    start, end = start[len(start) - both :], end[len(end) - both :]  # the first ones were queued before the capture
    called = called[:both]  # the last ones run after it
    if (start < called).any():
        return None
    return HostWork(called_ns=called, start_ns=start, end_ns=end)


def _calls(trace: OpTrace) -> I64:
    """Starts of the calls that queue runs, rising."""
    for end in (_QUEUES, _OLDER_QUEUES):
        named = np.array([text.endswith(end) for text in trace.strings], np.bool_)[trace.metas.name]
        if not named.any():
            continue
        lines = [one for one in trace.lines_of(LineKind.THREAD) if trace.planes[one.plane].kind is PlaneKind.HOST]
        found = [trace.events.start_ns[one.slice][take(named, trace.events.meta[one.slice])] for one in lines]
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))
    return np.empty(0, np.int64)
