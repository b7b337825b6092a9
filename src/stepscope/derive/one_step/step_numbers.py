"""The number of each step, counted from the job's first step, which is 0. Steps in gaps of the duty cycle, which were
only counted, have numbers too.

An update marks the end of its step: what lasts from the first one to the second is the second step, number 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.steps import gaps
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import F64, I64


def of(steps: Steps) -> I64:
    """Number of each step on record: int64[step]. One in which a gap lies has that of the first it stands for."""
    hidden = _calls_in_gaps(steps)
    total = float(hidden.sum())
    before = np.concatenate(([0.0], np.cumsum(hidden)[:-1]))
    shift = before * (steps.skipped / total) if total else np.zeros(len(steps))
    first = int(steps.kind == Kind.APPLY)
    numbers: I64 = first + np.arange(len(steps)) + np.rint(shift).astype(np.int64)
    return numbers


def row_of(numbers: I64, number: int) -> int:
    """Row of the step on record with this number, or of the one that stands for it."""
    return max(0, int(np.searchsorted(numbers, number, side="right")) - 1)


def _calls_in_gaps(steps: Steps) -> F64:
    """Calls that were counted in each step in which a gap lies: float64[step]."""
    counted = gaps.counted(steps.worker.gaps, steps.kind)
    calls = np.zeros(len(steps))
    at = np.searchsorted(steps.starts, counted.start_ns, side="right") - 1
    mine = (at >= 0) & steps.unobserved[np.maximum(at, 0)]
    np.add.at(calls, at[mine], counted.calls[mine])
    return calls if calls.any() else steps.unobserved.astype(np.float64)
