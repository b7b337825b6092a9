"""Total time of records by name: each callback, save, loop ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import Name


class NamedTime(Struct, frozen=True, kw_only=True):
    """Time of the records of one name within the steady steps."""

    name: Name
    calls: int
    total_ns: int


def build(steps: Steps, names: Mapping[int, Name], kinds: Sequence[Kind]) -> tuple[NamedTime, ...]:
    """Times of the records of some kinds on the step thread, longest first. Includes counted short calls."""
    records = steps.worker.records
    lo, hi = steps.windows
    inside = (records.thread == steps.thread) & (records.start_ns < hi[-1])
    inside &= records.start_ns + records.dur_ns > lo[0]
    counted = inside & (records.kind == Kind.COUNTS) & np.isin(records.flags >> 8, kinds)
    whole = inside & np.isin(records.kind, kinds)
    starts = records.start_ns
    time = np.where(counted, records.dur_ns, intervals.clipped_sum(starts, starts + records.dur_ns, (lo, hi)))
    calls = np.where(counted, records.arg, 1)
    rows = []
    for name in np.unique(records.name[counted | whole]):
        mine = (counted | whole) & (records.name == name) & (time > 0)
        if mine.any() and int(name) in names:
            row = NamedTime(name=names[int(name)], calls=int(calls[mine].sum()), total_ns=int(time[mine].sum()))
            rows.append(row)
    return tuple(sorted(rows, key=lambda r: -r.total_ns))
