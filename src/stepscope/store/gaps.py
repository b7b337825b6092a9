"""Splits off gaps of the duty cycle (``agent.duty_cycle``): the one place that knows how a session stores them.

In a gap hot wrappers are detached, because steps are so short that wrappers would cost too much. What is said about
steps is said of the times between gaps. So that nothing of a gap is divided by steps that were not recorded, records
of all that happens in steps are set apart here. Loops, traces, runs of sessions, the user's own steps, and what the
agent says of itself are recorded in gaps as everywhere (``Trait.STAYS``): they stay.
"""

from __future__ import annotations

import numpy as np

from stepscope.model.records import Gaps, RecordTable
from stepscope.wire.kinds import Kind, Trait, kinds_with


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
    return records.take(~apart), gaps, records.take(apart)
