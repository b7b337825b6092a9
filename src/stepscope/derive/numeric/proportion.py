"""The interval of a share that was estimated from a number of samples."""

from __future__ import annotations

import numpy as np


def interval(ratio: float, of: int) -> tuple[float, float]:
    """95 % interval of a share estimated from ``of`` samples (Wilson's score interval)."""
    if of == 0:
        return 0.0, 1.0
    z = 1.96
    p = min(1.0, max(0.0, ratio))
    centre = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * float(np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))) / (1 + z * z / of)
    return max(0.0, centre - half), min(1.0, centre + half)
