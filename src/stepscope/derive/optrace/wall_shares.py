"""The wall time of the traced steps that belongs to each op: a moment in which several run is divided among them.

So the times of all ops add up to the time in which any op ran. An op that has half of the cores because another runs
at the same time takes twice as long, but no more of the wall time than alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.graph.index import CALLING
from stepscope.derive.optrace.host.activity import Activity

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.records import F64, I64


class WallShares(Struct, frozen=True, kw_only=True):
    """Ops by label (``OpView.labels.ops``)."""

    wall_ns: F64
    """float64[label, step]: wall time."""
    calls: I64
    """int64[label]: runs that began within the steps."""
    run_ns: F64
    """float64[label]: summed duration of these runs."""

    @property
    def steps(self) -> int:
        """Number of traced steps."""
        return int(self.wall_ns.shape[1])


def build(view: OpView) -> WallShares:
    """The shares of the host's ops."""
    labels, periods = view.labels, view.periods
    rows = view.domain.rows(Activity.OP, Activity.PYTHON)
    calling = np.array([kind in CALLING for _, kind in labels.ops] + [True], np.bool_)
    rows = rows[~calling[labels.index[rows]]]
    label = labels.index[rows]
    start, end = view.trace.events.start_ns[rows], view.trace.events.end_ns[rows]
    step = np.searchsorted(periods.start_ns, start, "right") - 1
    inside = (step >= 0) & (start < periods.end_ns[np.maximum(step, 0)]) & (end > start)
    label, start, end, step = label[inside], start[inside], end[inside], step[inside]
    wall = divided(start, end, periods.windows)
    shape = len(labels.ops), len(periods)
    cells = np.bincount(label * shape[1] + step, weights=wall, minlength=shape[0] * shape[1])
    return WallShares(
        wall_ns=np.asarray(cells.reshape(shape), np.float64),
        calls=np.bincount(label, minlength=shape[0]).astype(np.int64),
        run_ns=np.asarray(np.bincount(label, weights=end - start, minlength=shape[0]), np.float64),
    )


def divided(start: I64, end: I64, windows: Intervals) -> F64:
    """The part of each interval within the windows, each moment divided by the number of intervals that hold it."""
    edges = np.unique(np.concatenate([start, end, *windows]))
    if not len(start):
        return np.zeros(len(start))
    begins, ends = np.searchsorted(edges, start), np.searchsorted(edges, end)
    change = np.bincount(begins, minlength=len(edges)) - np.bincount(ends, minlength=len(edges))
    at_once = np.maximum(1, np.cumsum(change)[:-1])
    opened = np.bincount(np.searchsorted(edges, windows[0]), minlength=len(edges))
    closed = np.bincount(np.searchsorted(edges, windows[1]), minlength=len(edges))
    within = np.cumsum(opened - closed)[:-1] > 0
    before = np.concatenate(([0.0], np.cumsum(np.where(within, np.diff(edges) / at_once, 0.0))))
    found: F64 = before[ends] - before[begins]
    return found
