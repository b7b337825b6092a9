"""Which spans lie in an exported range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stepscope.tables.records import I64

Range = tuple[int, int]
"""From, to: nanoseconds since session start."""


def inside(start: I64, end: I64, within: Range | None) -> I64:
    """Rows of the spans that lie in a range at least partly; None: of all."""
    if within is None:
        return np.arange(len(start))
    low, high = within
    return np.flatnonzero((start < high) & ((end > low) | ((end == start) & (start >= low))))
