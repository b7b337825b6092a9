"""Cost of some graph nodes to the step: the time of their ops in an op trace, relative to all other ops.

Threads run ops at the same time, so the sum of op times is no share of the step. A moment in which only the given ops
run counts in full; a moment in which others run too counts half, because the step may or may not have gone on without
them. ``low`` and ``high`` count none and all of such moments, and the time that tracing added to the steps: all of it
with these ops, or with the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host.activity import Activity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.graph.independent_loops import LoopPart
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.records import I64, Bool

BY_OTHERS = 0.5
"""Weight of a moment in which other ops run too."""
STALL_FACTOR = 5.0
"""Times the usual traced step from which one is a stall if its ops took no longer than usual."""
MAX_STALLS_RATIO = 0.2
"""Of the traced steps: more of them are how the job is."""
MIN_STEPS = 5
"""Traced steps without which none is usual."""
EVENT_NS = 300
"""Time that a traced event adds to a step, where the capture could not be compared with its neighbours. Source: a Keras
fit of TensorFlow 2.21 with 16,600 events a step, 45 % longer traced than not."""
MOST_TRACING = 0.9
"""Part of the traced time that tracing adds at most: a capture is compared with few neighbours."""
NEVER, FOREVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class OpShare(Struct, frozen=True, kw_only=True):
    """Time of some ops, as ratios of the traced steps' time."""

    alone: float
    """Share of moments in which only they ran."""
    beside: float
    """Share of moments in which other ops ran too."""
    calls_per_step: float
    """Number of times that their ops ran in each step."""
    beyond: float = 0.0
    """Sum over their calls of the time beyond a fixed time; see ``NodeCosts.of_loops``."""
    turns: float = 0.0
    """Iterations of a loop in each step; 0: none of its ops was seen."""
    tracing: float = 0.0
    """Part of the traced steps' time that tracing added, at these ops or others."""

    @property
    def ratio(self) -> float:
        """Best estimate of their share."""
        return self.alone + BY_OTHERS * self.beside

    @property
    def low(self) -> float:
        """Lower bound of their share."""
        return max(0.0, self.alone - self.tracing) / (1.0 - self.tracing)

    @property
    def high(self) -> float:
        """Upper bound of their share."""
        return min(1.0, (self.alone + self.beside) / (1.0 - self.tracing))


class NodeCosts:
    """The ops of the traced steps with their nodes, without the ops of the input."""

    def __init__(self, trace: OpView, index: GraphIndex, slowed: float | None = 0.0) -> None:
        """``slowed``: by how much traced steps are longer than others, as a ratio of these; None if not measured."""
        self.trace = trace
        self.index = index
        ops = trace.labels.ops
        self._node = np.array([index.node_of(name, kind) for name, kind in ops], np.int64)
        """Row of the node of each label."""
        forward = [index.forward_of(n) if n != NOT_FOUND and index.is_gradient(n) else n for n in self._node.tolist()]
        self._of = np.array(forward, np.int64)
        """Row of the forward node of each label if it is a gradient, else its own row."""
        rows = trace.launches.work if trace.launches is not None else trace.domain.rows(Activity.OP, Activity.PYTHON)
        rows = rows[trace.labels.index[rows] >= 0]
        self._label = trace.labels.index[rows]
        self._start = trace.trace.events.start_ns[rows]
        self._end = trace.trace.events.end_ns[rows]
        self._periods = _without_stalls(trace.periods, intervals.merge(self._start, self._end))
        self._period = np.searchsorted(self._periods.start_ns, self._start, "right") - 1
        inside = (self._period >= 0) & (self._start < self._periods.end_ns[np.maximum(self._period, 0)])
        self._inside: Bool = inside
        self._wall = max(1, intervals.total(self._periods.windows))
        self._tracing = _tracing(trace, self._periods.windows, self._wall, slowed)

    @property
    def nodes(self) -> int:
        """Number of nodes whose ops ran."""
        return len(np.unique(self._node[self._node != NOT_FOUND]))

    def of_nodes(self, rows: Iterable[int], *, gradients: bool = False) -> OpShare:
        """Share of the ops of these nodes; with ``gradients`` also of their gradients."""
        mine = self._mine(rows, gradients=gradients)
        spans = intervals.merge(self._start[mine], self._end[mine])
        return self._share(spans, mine)

    def of_loops(self, parts: Sequence[LoopPart], fixed_ns: int) -> OpShare:
        """Share of loops: in each step from the first of a loop's ops to its last, and the unseen time while it may
        run.

        Time between the ops of a body belongs to the loop: the executor finds out what can run next. After some 90 runs
        TensorFlow takes an op of a few microseconds for cheap, and from then on no trace shows it. So moments without
        any op count too, from the last op that a loop needs to the first that needs it; if other nodes may run then, in
        proportion to the loop's part of all nodes. Not on devices, whose ops are all recorded.

        ``beyond`` of the result is the time of the ops beyond ``fixed_ns`` of each call, ``turns`` the runs per step of
        the op recorded most often.
        """
        every = np.zeros(len(self._label), np.bool_)
        shown = intervals.empty()
        for part in parts:
            mine = self._mine(part.body) & self._inside
            every |= mine
            shown = intervals.union(shown, intervals.merge(*self._bounds(mine)))
        beyond = np.maximum(0, (self._end - self._start)[every] - fixed_ns).sum() / self._wall
        turns = self._turns(every)
        share = self._share(shown, every)
        alone = share.alone + self._unseen(parts, shown, max(1.0, turns)) / self._wall
        return replace(share, alone=alone, beyond=float(beyond), turns=turns)

    def turns(self, rows: Iterable[int]) -> float:
        """Runs per step of the op of these nodes that ran most often; 0: none was recorded."""
        return self._turns(self._mine(rows) & self._inside)

    def costliest(self, rows: Iterable[int]) -> list[int]:
        """Those of the given nodes whose ops ran, by their time within the steps, longest first."""
        mine = self._mine(rows) & self._inside
        nodes = self._node[self._label[mine]]
        known, which = np.unique(nodes, return_inverse=True)
        time = np.bincount(which, weights=(self._end - self._start)[mine], minlength=len(known))
        order: list[int] = known[np.argsort(-time, kind="stable")].tolist()
        return order

    def _mine(self, rows: Iterable[int], *, gradients: bool = False) -> Bool:
        wanted = np.array(sorted(set(rows)), np.int64)
        labels = np.isin(self._node, wanted)
        if gradients:
            labels |= np.isin(self._of, wanted) & (self._of >= 0)
        found: Bool = labels[self._label]
        return found

    def _turns(self, ops: Bool) -> float:
        return int(np.bincount(self._label[ops]).max()) / len(self._periods) if ops.any() else 0.0

    def _unseen(self, parts: Sequence[LoopPart], shown: Intervals, turns: float) -> float:
        """Time of loops during which no op was recorded."""
        if self.trace.launches is not None:
            return 0.0
        taken = intervals.union(shown, intervals.merge(self._start, self._end))
        found = 0.0
        for part in parts:
            _, begin = self._bounds(self._mine(part.before) & self._inside)
            end, _ = self._bounds(self._mine(part.after) & self._inside)
            known = (begin > NEVER) & (end < FOREVER) & (begin < end)
            around = intervals.clip(intervals.merge(begin[known], end[known]), self._periods.windows)
            own = turns * len(part.body)
            free = intervals.total(around) - intervals.total(intervals.clip(around, taken))
            found += free * own / max(1.0, own + part.beside)
            taken = intervals.union(taken, around)
        return found

    def _bounds(self, ops: Bool) -> tuple[I64, I64]:
        """Start of the first and end of the last of these ops in each step; ``FOREVER``, ``NEVER`` without one."""
        count = len(self._periods)
        first = np.full(count, FOREVER)
        last = np.full(count, NEVER)
        np.minimum.at(first, self._period[ops], self._start[ops])
        np.maximum.at(last, self._period[ops], self._end[ops])
        return first, last

    def _share(self, spans: Intervals, mine: Bool) -> OpShare:
        windows = self._periods.windows
        spans = intervals.clip(spans, windows)
        others = intervals.merge(self._start[~mine], self._end[~mine])
        beside = intervals.total(intervals.clip(spans, others))
        calls: I64 = np.flatnonzero(mine & self._inside)
        return OpShare(
            alone=(intervals.total(spans) - beside) / self._wall,
            beside=beside / self._wall,
            calls_per_step=len(calls) / max(1, len(self._periods)),
            tracing=self._tracing,
        )


def _tracing(trace: OpView, windows: Intervals, wall: int, slowed: float | None) -> float:
    """Part of the traced steps' time that tracing added."""
    if slowed is None:
        starts = trace.trace.events.start_ns[trace.domain.host & ~trace.domain.of_input]
        events = int(
            (np.searchsorted(windows[0], starts, "right") > np.searchsorted(windows[1], starts, "right")).sum()
        )
        return min(MOST_TRACING, EVENT_NS * events / wall)
    return min(MOST_TRACING, max(0.0, slowed) / (1.0 + max(0.0, slowed)))


def _without_stalls(periods: Periods, busy: Intervals) -> Periods:
    """The traced steps without single ones in which the job stood still for longer than all others took.

    Of ten traced steps one such stall would make the shares of all ops small; of the job's steps it is one of hundreds.
    """
    dur = periods.dur_ns
    if len(periods) < MIN_STEPS:
        return periods
    ran = intervals.clipped_sum(periods.start_ns, periods.end_ns, busy)
    stalled = (dur > STALL_FACTOR * np.median(dur)) & (ran <= 2 * np.median(ran))
    if not stalled.any() or stalled.sum() > MAX_STALLS_RATIO * len(periods):
        return periods
    keep = ~stalled
    return replace(periods, start_ns=periods.start_ns[keep], end_ns=periods.end_ns[keep], number=periods.number[keep])
