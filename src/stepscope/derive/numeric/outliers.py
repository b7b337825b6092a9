"""Durations that are outliers among others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepscope.tables.records import F64

FACTOR = 2.0
"""An outlier takes at least so many medians: if durations hardly vary, the fence alone is too close to them."""
FENCE = 3.0
"""Interquartile ranges above the third quartile. Source: Tukey's outer fence (Exploratory Data Analysis, 1977)."""


def slow_from_ns(durations: F64) -> float:
    """Duration from which one is an outlier among these: over Tukey's outer fence, and at least twice the median."""
    p25, p50, p75 = np.percentile(durations, (25, 50, 75))
    return float(max(FACTOR * p50, p75 + FENCE * (p75 - p25)))
