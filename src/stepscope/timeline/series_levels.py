"""Series at several levels of detail. Points too close to be told apart on a screen become one point that keeps their
lowest and highest values, so that no spike is lost.

The rule is that of spans (``levels``): a value that holds for at least one bucket of time stays as it is; shorter
neighbours that begin in the same bucket become one point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.timeline import levels

if TYPE_CHECKING:
    from stepscope.tables.records import F64, I64


class Held(Struct, frozen=True):
    """Values, each with the time for which it holds. Shapes: [value], sorted by start; none overlaps another."""

    start: I64
    end: I64
    value: F64

    def __len__(self) -> int:
        """Number of values."""
        return len(self.start)


class Points(Struct, frozen=True):
    """Values, or one point for several values. Shapes: [point], sorted by start."""

    start: I64
    end: I64
    low: F64
    high: F64
    mean: F64
    """Time-weighted mean."""
    count: I64

    def __len__(self) -> int:
        """Number of points."""
        return len(self.start)


def merged(held: Held, bucket: int) -> Points:
    """The points of a level whose buckets last ``bucket`` nanoseconds."""
    if not len(held):
        return Points(held.start, held.end, held.value, held.value, held.value, np.empty(0, np.int64))
    first = levels.firsts(held.start, held.end, bucket)
    last = np.append(first[1:], len(held)) - 1
    length = (held.end - held.start).astype(np.float64)
    return Points(
        held.start[first],
        held.end[last],
        np.minimum.reduceat(held.value, first),
        np.maximum.reduceat(held.value, first),
        np.add.reduceat(held.value * length, first) / np.add.reduceat(length, first),
        last - first + 1,
    )
