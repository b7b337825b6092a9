"""Host threads cut into pieces, each belonging to the innermost event at that moment.

Spans of a thread nest, so their times cannot be added up; pieces can: those of one thread never overlap, and together
they cover what its events cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.op_domain import nearest

if TYPE_CHECKING:
    from stepscope.model.optrace import OpTrace
    from stepscope.model.records import I64, Bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Pieces of some lines. Shapes: int64[piece], sorted by (line, start); times ns."""

    start_ns: I64
    end_ns: I64
    event: I64
    """The innermost event: a row of the trace's events."""
    line: I64

    def __len__(self) -> int:
        """How many."""
        return len(self.start_ns)

    def take(self, which: I64 | Bool) -> Pieces:
        """Some of them, in the same order."""
        return Pieces(
            start_ns=self.start_ns[which], end_ns=self.end_ns[which], event=self.event[which], line=self.line[which]
        )


def build(trace: OpTrace, rows: I64, parent: I64) -> Pieces:
    """Cut the events ``rows``, which stand on lines whose spans nest.

    Args:
        trace: the trace.
        rows: rows of its events, rising.
        parent: int64[row of the trace], the enclosing event or -1 (``op_nesting.parents``); an enclosing event that is
            not among ``rows`` does not show.

    Cost: one sort of two edges an event.
    """
    events = trace.events
    rows = rows[events.dur_ns[rows] > 0]
    if not len(rows):
        none = np.empty(0, np.int64)
        return Pieces(start_ns=none, end_ns=none, event=none, line=none)
    shown = np.zeros(len(events), np.bool_)
    shown[rows] = True
    above = nearest(parent, shown, rows)
    start, end, line = events.start_ns[rows], events.end_ns[rows], events.line[rows].astype(np.int64)
    first = int(start.min())
    shift = line * (int(end.max()) - first + 1) - first  # lines one behind the other: one sort for all
    # at one moment ends come before starts, inner ends before outer ones, outer starts before inner ones
    edges = np.concatenate([(end + shift)[::-1], start + shift])
    order = np.argsort(edges, kind="stable")
    at = np.concatenate([end[::-1], start])[order]
    lines = np.concatenate([line[::-1], line])[order]
    current = np.concatenate([above[::-1], rows])[order]
    keep = np.flatnonzero((np.diff(at) > 0) & (current[:-1] >= 0) & (lines[1:] == lines[:-1]))
    return Pieces(start_ns=at[keep], end_ns=at[keep + 1], event=current[keep], line=lines[keep])
