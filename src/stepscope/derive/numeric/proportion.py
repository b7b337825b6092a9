"""The interval of a share that was estimated from a part of all: from samples, or from steps that were timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.tables.records import F64, I64

NORMAL = 1.96
"""Standard errors to each side of an interval of 95 %."""


def interval(ratio: float, of: float) -> tuple[float, float]:
    """95 % interval of a share estimated from ``of`` samples (Wilson's score interval)."""
    if of == 0:
        return 0.0, 1.0
    z = NORMAL
    p = min(1.0, max(0.0, ratio))
    centre = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * float(np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))) / (1 + z * z / of)
    return max(0.0, centre - half), min(1.0, centre + half)


def effective(weights: Iterable[float]) -> float:
    """Number of samples of one weight whose shares are as uncertain as those of samples of these weights (Kish)."""
    found = np.fromiter(weights, np.float64)
    squares = float((found * found).sum())
    return float(found.sum()) ** 2 / squares if squares else 0.0


def reach(parts: F64, wholes: F64, groups: I64, of: int) -> float:
    """How far the share ``parts.sum() / wholes.sum()`` may be off at 95 %, as those of ``of`` steps are known only.

    The larger of two standard errors: of steps that are independent, and of groups of neighbours, which may be alike.

    Args:
        parts: time of what has the share in each step that was timed. float64[timed step], ns.
        wholes: time of each of these steps. float64[timed step], ns.
        groups: the first step of each group. int64[group], ascending, from 0.
        of: number of all steps, those included that were not timed.
    """
    unseen, total = max(0.0, 1.0 - len(parts) / max(1, of)), float(wholes.sum())
    if not unseen or total <= 0:
        return 0.0
    off = parts - wholes * (float(parts.sum()) / total)
    sums = [values for values in (off, np.add.reduceat(off, groups)) if len(values) > 1]
    squares = max((float((s * s).sum()) * len(s) / (len(s) - 1) for s in sums), default=0.0)
    return NORMAL * float(np.sqrt(unseen * squares)) / total
