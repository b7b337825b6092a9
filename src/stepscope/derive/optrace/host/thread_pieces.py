"""Host threads cut into pieces, each belonging to the innermost event at that moment.

Spans of a thread nest, so their times cannot be added; pieces can: those of one thread never overlap, and together they
cover the same time as the events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.host.activity import nearest
from stepscope.derive.optrace.host.event_nesting import apart
from stepscope.tables.blocks import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from stepscope.tables.optrace import I8, I32, OpTrace
    from stepscope.tables.records import I64, Bool

T = TypeVar("T", bound=np.signedinteger)


class Pieces(Struct, frozen=True, kw_only=True):
    """Pieces of some lines. Shapes: int64[piece], sorted by (line, start); times ns."""

    start_ns: I64
    end_ns: I64
    event: I64
    """The innermost event: a row of the trace's events."""
    line: I64

    def __len__(self) -> int:
        """Number of pieces."""
        return len(self.start_ns)

    def take(self, which: I64 | Bool) -> Pieces:
        """Some of them, in the same order."""
        return Pieces(
            start_ns=self.start_ns[which], end_ns=self.end_ns[which], event=self.event[which], line=self.line[which]
        )


def build(trace: OpTrace, rows: I64, parent: I32) -> Pieces:
    """Cut the events ``rows``, on lines whose spans nest.

    Args:
        trace: the trace.
        rows: rows of its events.
        parent: int32[row of the trace], the enclosing event or -1 (``event_nesting.parents``); an enclosing event that
            is not among ``rows`` is left out.

    Cost: one sort of two edges an event.
    """
    shown = np.zeros(len(trace.events), np.bool_)
    shown[rows[trace.events.dur_ns[rows] > 0]] = True
    found: list[list[I64]] = [[], [], [], []]
    for line in trace.lines:
        mine = np.flatnonzero(shown[line.slice]) + line.first
        for cut in _cut(trace, mine, mine, nearest(parent, shown, mine)):
            for column, part in zip(found, (*cut, np.broadcast_to(np.int64(line.index), len(cut[0]))), strict=True):
                column.append(part)
    start, end, event, line_of = (np.concatenate([np.empty(0, np.int64), *column]) for column in found)
    return Pieces(start_ns=start, end_ns=end, event=event, line=line_of)


def by_code(trace: OpTrace, shown: Bool, parent: I32, code: I8) -> Iterator[tuple[I64, I64, I8]]:
    """Start, end and code of pieces, for some of one line at a time: the code of the innermost event at that moment.

    An event inside another with the same code makes no piece of its own, so these are fewer than those of ``build``.

    Args:
        trace: the trace.
        shown: bool[event], the events to cut, all with a duration.
        parent: as in ``build``.
        code: int8[event]; -1 shows nothing.
    """
    seen = np.append(np.where(shown, code, _HIDDEN), np.int8(-1))  # the last entry stands for no event
    for line in trace.lines:
        cut = [
            _differing(seen, shown, parent, line.first + block.start, min(line.first + block.stop, line.last))
            for block in blocks(line.last - line.first)
        ]
        if cut:
            yield from _cut(trace, *(np.concatenate(column) for column in zip(*cut, strict=True)))


_HIDDEN = np.int8(-2)


def _differing(seen: I8, shown: Bool, parent: I32, first: int, last: int) -> tuple[I64, I8, I8]:
    """Which events between two rows are shown and differ in code from their parent; both codes."""
    own, around = seen[first:last], seen[parent[first:last]]
    rows = np.flatnonzero((own != around) & (own != _HIDDEN))
    own, around = own[rows], around[rows]
    rows += first
    unknown = np.flatnonzero(around == _HIDDEN)
    if len(unknown):
        around[unknown] = seen[nearest(parent, shown, rows[unknown])]
        known = np.flatnonzero(own != around)
        rows, own, around = rows[known], own[known], around[known]
    return rows, own, around


def _cut(
    trace: OpTrace, rows: I64, shows: npt.NDArray[T], above: npt.NDArray[T]
) -> Iterator[tuple[I64, I64, npt.NDArray[T]]]:
    """Start and end of pieces of one line and what they show: ``shows`` from an event's start on, ``above`` from its
    end on.
    """
    start = trace.events.start_ns[rows]
    end = start + trace.events.dur_ns[rows]
    for part in apart(start, end):
        # at equal times: ends before starts, inner ends before outer ones, outer starts before inner ones
        edges = np.concatenate([end[part][::-1], start[part]])
        order = np.argsort(edges, kind="stable")
        at = edges[order]
        current = np.concatenate([above[part][::-1], shows[part]])[order]
        keep = np.flatnonzero((at[1:] > at[:-1]) & (current[:-1] >= 0))
        yield at[keep], at[keep + 1], current[keep]
