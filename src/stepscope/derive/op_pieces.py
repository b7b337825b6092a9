"""Host threads cut into pieces, each belonging to the innermost event at that moment.

Spans of a thread nest, so their times cannot be added up; pieces can: those of one thread never overlap, and together
they cover what its events cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.op_domain import nearest
from stepscope.derive.op_nesting import apart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.optrace import I32, OpTrace
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


def build(trace: OpTrace, rows: I64, parent: I32) -> Pieces:
    """Cut the events ``rows``, which stand on lines whose spans nest.

    Args:
        trace: the trace.
        rows: rows of its events.
        parent: int32[row of the trace], the enclosing event or -1 (``op_nesting.parents``); an enclosing event that is
            not among ``rows`` does not show.

    Cost: one sort of two edges an event.
    """
    shown = np.zeros(len(trace.events), np.bool_)
    shown[rows[trace.events.dur_ns[rows] > 0]] = True
    found = list(parts(trace, shown, parent))
    none = np.empty(0, np.int64)
    return Pieces(
        start_ns=np.concatenate([none, *(part.start_ns for part in found)]),
        end_ns=np.concatenate([none, *(part.end_ns for part in found)]),
        event=np.concatenate([none, *(part.event for part in found)]),
        line=np.concatenate([none, *(part.line for part in found)]),
    )


def parts(trace: OpTrace, shown: Bool, parent: I32) -> Iterator[Pieces]:
    """What ``build`` gives, some pieces of one line at a time. ``shown``: events that are cut, all of which last."""
    events = trace.events
    for line in trace.lines:
        mine = np.flatnonzero(shown[line.slice]) + line.first
        above = nearest(parent, shown, mine)
        start = events.start_ns[mine]
        end = start + events.dur_ns[mine]
        for part in apart(start, end):
            yield _cut(start[part], end[part], mine[part], above[part], line.index)


def _cut(start: I64, end: I64, rows: I64, above: I64, line: int) -> Pieces:
    # at one moment ends come before starts, inner ends before outer ones, outer starts before inner ones
    edges = np.concatenate([end[::-1], start])
    order = np.argsort(edges, kind="stable")
    at = edges[order]
    current = np.concatenate([above[::-1], rows])[order]
    keep = np.flatnonzero((np.diff(at) > 0) & (current[:-1] >= 0))
    where = np.broadcast_to(np.int64(line), len(keep))
    return Pieces(start_ns=at[keep], end_ns=at[keep + 1], event=current[keep], line=where)
