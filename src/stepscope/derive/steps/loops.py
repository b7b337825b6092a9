"""Keras' calls in a loop: the steps are the calls repeated inside them, not these calls.

A fit of the loop and the steps in it take the same time. If a first trace or a gap (``derive.steps.gaps``) lies at the
edge of a fit, its steps seem to cover less; fits that each contain a gap have no steady step at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.numeric import intervals
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.steps.candidate import Candidate


def spread(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates; executions that lie mostly in Keras' calls get at least the cover of those calls."""
    loops = [one for one in candidates if one.kind == Kind.LOOP]
    return [
        replace(one, cover_ns=max([one.cover_ns, *(loop.cover_ns for loop in loops if _holds(loop, one))]))
        if one.kind == Kind.EXECUTION
        else one
        for one in candidates
    ]


def _holds(loop: Candidate, one: Candidate) -> bool:
    """Whether most of the executions lie in calls of this loop."""
    if loop.worker is not one.worker or loop.thread != one.thread:
        return False
    records = one.worker.records
    begun, starts = records.start_ns[loop.index], records.start_ns[one.index]
    calls = intervals.merge(begun, begun + records.dur_ns[loop.index])
    at = np.searchsorted(calls[0], starts, side="right") - 1
    inside = (at >= 0) & (starts < calls[1][np.maximum(at, 0)])
    return 2 * int(inside.sum()) > len(starts)
