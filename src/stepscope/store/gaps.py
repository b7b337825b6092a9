"""Splits off gaps of the duty cycle (``agent.duty_cycle``): the one place that knows how a session stores them.

In a gap hot wrappers are detached, because steps are so short that wrappers would cost too much. What is said about
steps is said of the times between gaps. So that nothing of a gap is divided by steps that were not recorded, records
of all that happens in steps are set apart here. Loops, traces, runs of sessions, the user's own steps, and what the
agent says of itself are recorded in gaps as everywhere (``Trait.STAYS``): they stay.

Calls of a kind that is counted may have been recorded in a gap all the same, where their wrapper was not exchanged for
the one that counts (Keras on another backend than TensorFlow): they are counted with the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.records import Gaps, RecordTable
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.model.records import I64


def split(stored: RecordTable) -> tuple[RecordTable, Gaps, RecordTable]:
    """``Worker``'s ``records``, ``gaps`` and ``in_gaps`` of stored records, sorted by start. Cost: O(n)."""
    told = stored.kind == Kind.REST
    if not told.any():
        return stored, Gaps.empty(), RecordTable.empty()
    rows, records = stored.take(told), stored.take(~told)
    gaps = Gaps(start_ns=rows.start_ns, end_ns=rows.start_ns + rows.dur_ns, kind=rows.flags >> 8, calls=rows.arg)
    last = np.searchsorted(gaps.start_ns, records.start_ns, side="right") - 1
    inside = (last >= 0) & (records.start_ns < np.maximum.accumulate(gaps.end_ns)[np.maximum(last, 0)])
    apart = inside & ~np.isin(records.kind, kinds_with(Trait.STAYS))
    set_apart = records.take(apart)
    return records.take(~apart), replace(gaps, calls=gaps.calls + _recorded(set_apart, gaps)), set_apart


def _recorded(in_gaps: RecordTable, gaps: Gaps) -> I64:
    """How many calls of the kind that a row of ``gaps`` counts were recorded then. int64[row]."""
    calls = np.zeros(len(gaps), np.int64)
    for kind in np.unique(gaps.kind):
        row = gaps.row_of(int(kind), in_gaps.start_ns[in_gaps.kind == kind])
        np.add.at(calls, row[row >= 0], 1)
    return calls
