"""The interval of a share that was estimated from a number of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable


def interval(ratio: float, of: float) -> tuple[float, float]:
    """95 % interval of a share estimated from ``of`` samples (Wilson's score interval)."""
    if of == 0:
        return 0.0, 1.0
    z = 1.96
    p = min(1.0, max(0.0, ratio))
    centre = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * float(np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))) / (1 + z * z / of)
    return max(0.0, centre - half), min(1.0, centre + half)


def effective(weights: Iterable[float]) -> float:
    """Number of samples of one weight whose shares are as uncertain as those of samples of these weights (Kish)."""
    found = np.fromiter(weights, np.float64)
    squares = float((found * found).sum())
    return float(found.sum()) ** 2 / squares if squares else 0.0
