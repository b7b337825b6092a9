"""What a run's steps took in all: those that were only counted are in it, so it is no estimate from timed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.steps import gaps

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps


class Total(Struct, frozen=True, kw_only=True):
    """All steps after the warm-up, without pauses between two training loops."""

    count: int
    """Number of steps."""
    ns: float
    """Their time."""
    made: int
    """Steps of the whole run, warm-up included: the work that it did."""
    timed: int
    """Number of those that were timed one by one; the others were counted."""

    @property
    def mean_ns(self) -> float:
        """Time of the mean step."""
        return self.ns / self.count


def of(steps: Steps) -> Total | None:
    """The total of one thread's steps; None if none is steady."""
    if not steps.steady.any():
        return None
    taken = steps.steady | steps.unobserved
    counted_ns = gaps.counted_until(steps.worker.gaps, steps.kind)
    taken[-1] |= counted_ns > steps.ends[-1]  # a gap follows the last step: it ends when that does
    inside, apart = np.flatnonzero(taken), ~taken
    begin, end = int(steps.starts[inside[0]]), max(int(steps.ends[inside[-1]]), counted_ns)
    paused = int(steps.durations[apart & (steps.starts >= begin) & (steps.starts < end)].sum())
    count = steps.count - int(apart.sum())
    if count <= 0:
        return None
    return Total(count=count, ns=float(end - begin - paused), made=steps.count, timed=steps.steady_count)
