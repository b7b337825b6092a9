"""Steps of which one in many was recorded and the others were counted: there would have been too many records
(``agent.sampling.governor``).

Such a record stands for several steps, as a gap of the duty cycle does: none of them was timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.wire.kinds import SHAPE_SHIFT, Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.tables.records import Bool

LEAST = 64
"""Number of steps that were timed one by one from which these speak for the others."""


def several(candidate: Candidate) -> Bool:
    """Whether more calls than one lie between the start of each and that of the next. bool[call]."""
    flagged = (candidate.worker.records.flags[candidate.index] & Flag.THINNED) != 0
    found: Bool = flagged | np.append(flagged[1:], False)
    return found if int((~found).sum()) >= LEAST else np.zeros(len(found), bool)


def counted(candidate: Candidate) -> int:
    """Number of calls that were counted instead, outside of gaps."""
    records = candidate.worker.records
    if not ((records.flags[candidate.index] & Flag.THINNED) != 0).any():
        return 0
    alike = np.isin(records.name, records.name[candidate.index]) & (records.thread == candidate.thread)
    mine = alike & (records.kind == Kind.COUNTS) & (records.flags >> SHAPE_SHIFT == candidate.kind)
    return int(records.arg[mine].sum())
