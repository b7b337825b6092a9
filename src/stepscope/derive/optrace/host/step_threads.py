"""Which threads of a PyTorch trace work for the steps: the one that makes them, and those that run its backward pass.

PyTorch runs an op on the thread that calls it. TensorFlow and JAX hand ops to pools of threads, so that there every
thread may work for the step. A trace holds other threads where ``profile_all_threads`` is set, or several processes
were put into one file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.tables.blocks import take
from stepscope.tables.optrace import Category, LineKind, PlaneKind

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.tables.optrace import Line, OpTrace
    from stepscope.tables.records import Bool

KINETO = "kineto"
"""Format of PyTorch's traces."""
_BACKWARD = "autograd::engine::evaluate_function"
"""Head of the names of what a thread of the backward pass calls. Source: torch/csrc/autograd/engine.cpp."""
_LANE = re.compile(r" \(\d+\)$")
"""End of the name of a thread's further lines, for events that overlap (``readers.chrome.trace_lanes``)."""


class ThreadActivity(Struct, frozen=True, kw_only=True):
    """What another thread does during some times."""

    thread: str
    op: str
    """The op that takes most of it."""
    ratio: float
    """Share of the times in which the thread runs ops."""


def by_torch(trace: OpTrace) -> bool:
    """Whether PyTorch's profiler wrote the trace."""
    return trace.source.format == KINETO


def beside(trace: OpTrace, line: int) -> Bool | None:
    """The events on threads that do not work for the steps on a line, without exchanges; None if all may do so."""
    if not by_torch(trace) or line < 0 or trace.planes[trace.lines[line].plane].kind is not PlaneKind.HOST:
        return None
    calls = np.array([text.startswith(_BACKWARD) for text in trace.strings], np.bool_)[trace.metas.name]
    mine = _thread(trace.lines[line])
    found = np.zeros(len(trace.events), np.bool_)
    for other in trace.lines_of(LineKind.THREAD):
        if trace.planes[other.plane].kind is PlaneKind.HOST and _thread(other) != mine:
            found[other.slice] = not take(calls, trace.events.meta[other.slice]).any()
    found &= ~take(trace.metas.category == Category.COLLECTIVE, trace.events.meta)
    return found


def busiest(trace: OpTrace, others: Bool, windows: Intervals) -> ThreadActivity | None:
    """The thread, of those that do not work for the steps, whose ops fill most of some times; None if there is none."""
    total, best = intervals.total(windows), None
    ops = others & take(trace.metas.category == Category.OP, trace.events.meta)
    for line in trace.lines_of(LineKind.THREAD):
        rows = line.first + np.flatnonzero(ops[line.slice])
        start, end = trace.events.start_ns[rows], trace.events.end_ns[rows]
        spent = intervals.clipped_sum(start, end, windows)
        if not spent.any():
            continue
        busy = intervals.paint([intervals.merge(start, end)], windows).sums[:, 0].sum()
        most = np.bincount(trace.events.meta[rows], weights=spent).argmax()
        name = trace.strings[trace.metas.op_name[most]]
        if best is None or busy / total > best.ratio:
            thread = _LANE.sub("", line.name)
            best = ThreadActivity(
                thread=f"thread {thread}" if thread.isdigit() else thread, op=name, ratio=float(busy) / total
            )
    return best


def _thread(line: Line) -> tuple[int, str]:
    """What the lines of one thread have in common."""
    return line.plane, _LANE.sub("", line.name)
