"""Ops of a step that lies in an op trace, compared with the other steps of that trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.records import F64, I64

OVERLAP = 0.5
"""Share of the step that a traced step must cover to be that step."""


class SlowOp(Struct, frozen=True, kw_only=True):
    """An op that took longer in one step than in the other traced steps."""

    name: str
    type: str
    ns: int
    """Time in the step, over all threads."""
    usual_ns: float
    """Median of the other traced steps."""


class StepOps(Struct, frozen=True, kw_only=True):
    """The ops of one step."""

    trace: str
    """Name of the op trace."""
    others: int
    """Other steps in it."""
    ops: tuple[SlowOp, ...]
    """Those that took longer than usual, by the time beyond."""


def build(views: tuple[OpView, ...], start: int, end: int, most: int) -> StepOps | None:
    """Ops of the step from ``start`` to ``end``; None where no op trace holds it."""
    for view in views:
        at = _period(view, start, end) if view.shows_steps else -1
        if at >= 0:
            return _ops(view, at, most)
    return None


def _period(view: OpView, start: int, end: int) -> int:
    """Position of the traced step that is this step; -1: none."""
    periods = view.periods
    common = np.minimum(periods.end_ns, end) - np.maximum(periods.start_ns, start)
    best = int(np.argmax(common)) if len(common) else -1
    return best if best >= 0 and common[best] >= OVERLAP * (end - start) else -1


def _ops(view: OpView, at: int, most: int) -> StepOps:
    events, labels, periods = view.trace.events, view.labels, view.periods
    step: I64 = np.searchsorted(periods.start_ns, events.start_ns, side="right") - 1
    good = (labels.index >= 0) & (step >= 0)
    good &= events.start_ns < periods.end_ns[np.maximum(step, 0)]
    times: F64 = np.zeros((len(periods), len(labels.ops)))
    np.add.at(times, (step[good], labels.index[good]), (events.end_ns - events.start_ns)[good])
    others = np.delete(times, at, axis=0)
    usual = np.median(others, axis=0) if len(others) else np.zeros(times.shape[1])
    longer = times[at] - usual
    order = [int(i) for i in np.argsort(-longer, kind="stable")[:most] if longer[i] > 0]
    ops = tuple(
        SlowOp(name=labels.ops[i][0], type=labels.ops[i][1], ns=int(times[at, i]), usual_ns=float(usual[i]))
        for i in order
    )
    return StepOps(trace=view.name, others=len(others), ops=ops)
