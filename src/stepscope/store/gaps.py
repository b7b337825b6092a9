"""Splits off gaps of the duty cycle (``agent.duty_cycle``): the one place that knows how a session stores them.

In a gap hot wrappers are detached, because steps are so short that wrappers would cost too much. What is said about
steps is said of the times between gaps. Records made inside a gap are moved aside here, so that no
rate divides them by steps that were not recorded. Loops, traces, runs of sessions, the user's own steps, and what the
agent says of itself are recorded in gaps as everywhere (``Trait.STAYS``): they stay, and so do their counted calls.

Calls of a kind that is counted may have been recorded in a gap all the same, where their wrapper was not exchanged for
the one that counts (Keras on another backend than TensorFlow): they are counted with the others. Updates are never
detached, so the gaps that ``read`` gives count those that were recorded, though no REST record does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.tables.records import Gaps, RecordTable
from stepscope.wire.kinds import SHAPE_SHIFT, Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.tables.records import I64


_UNDETACHED = tuple(kind for kind in kinds_with(Trait.DETACHED) if kind not in kinds_with(Trait.HOT))
"""Kinds that make steps and are recorded in gaps, too."""


def read(stored: RecordTable) -> tuple[RecordTable, Gaps, RecordTable]:
    """``split``; its gaps also count the calls of which one in many was recorded there, and those of kinds that nothing
    detaches.
    """
    records, gaps, in_gaps = split(stored)
    return records, _with_thinned(_with_undetached(gaps, in_gaps), in_gaps), in_gaps


def _with_undetached(gaps: Gaps, in_gaps: RecordTable) -> Gaps:
    """The rows, and one for each part of a gap and each kind that was recorded in gaps though no row counts it."""
    starts, first = np.unique(gaps.start_ns, return_index=True)
    of = np.where(in_gaps.kind == Kind.COUNTS, in_gaps.flags >> SHAPE_SHIFT, in_gaps.kind)
    found = [gaps]
    for kind in (kind for kind in _UNDETACHED if kind in of and kind not in gaps.kind):
        rows = Gaps(start_ns=starts, end_ns=gaps.end_ns[first], kind=np.full(len(starts), int(kind)), calls=0 * starts)
        outermost = in_gaps.take((in_gaps.flags & Flag.NESTED) == 0)
        found.append(replace(rows, calls=_recorded(outermost, rows)))
    rows = Gaps.concat(found)
    return rows.take(np.argsort(rows.start_ns, kind="stable"))


def _with_thinned(gaps: Gaps, in_gaps: RecordTable) -> Gaps:
    """The rows with the calls that records of counted ones stand for."""
    counts = in_gaps.take(in_gaps.kind == Kind.COUNTS)
    calls = gaps.calls.copy()
    for kind in np.unique(counts.flags >> SHAPE_SHIFT):
        mine = counts.take(counts.flags >> SHAPE_SHIFT == kind)
        row = gaps.row_of(int(kind), mine.start_ns)
        np.add.at(calls, row[row >= 0], mine.arg[row >= 0])
    return replace(gaps, calls=calls)


def split(stored: RecordTable) -> tuple[RecordTable, Gaps, RecordTable]:
    """``Worker``'s ``records``, ``gaps`` and ``in_gaps`` of stored records, sorted by start. Cost: O(n)."""
    told = stored.kind == Kind.REST
    if not told.any():
        return stored, Gaps.empty(), RecordTable.empty()
    rows, records = stored.take(told), stored.take(~told)
    ends, kinds = rows.start_ns + rows.dur_ns, rows.flags >> SHAPE_SHIFT
    gaps = Gaps(start_ns=rows.start_ns, end_ns=ends, kind=kinds, calls=rows.arg)
    last = np.searchsorted(gaps.start_ns, records.start_ns, side="right") - 1
    inside = (last >= 0) & (records.start_ns < np.maximum.accumulate(gaps.end_ns)[np.maximum(last, 0)])
    called = np.where(records.kind == Kind.COUNTS, records.flags >> SHAPE_SHIFT, records.kind)
    apart = inside & ~np.isin(called, kinds_with(Trait.STAYS))
    set_apart = records.take(apart)
    return records.take(~apart), replace(gaps, calls=gaps.calls + _recorded(set_apart, gaps)), set_apart


def _recorded(in_gaps: RecordTable, gaps: Gaps) -> I64:
    """How many calls of the kind that a row of ``gaps`` counts were recorded then. int64[row]."""
    calls = np.zeros(len(gaps), np.int64)
    for kind in np.unique(gaps.kind):
        row = gaps.row_of(int(kind), in_gaps.start_ns[in_gaps.kind == kind])
        np.add.at(calls, row[row >= 0], 1)
    return calls
