"""Series at several levels of detail: what no screen can show apart becomes one point, with its lowest and its highest
value, so that no spike is lost.

The rule is that of spans (``levels``): values that hold for at least a bucket of time stay themselves; shorter
neighbours that begin in the same bucket become one point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.timeline import levels

if TYPE_CHECKING:
    from stepscope.model.records import F64, I64


@dataclass(frozen=True, slots=True)
class Held:
    """Values that hold for a time each. Shapes: [value], by start; none overlaps another."""

    start: I64
    end: I64
    value: F64

    def __len__(self) -> int:
        """How many."""
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Points:
    """Values, or what stands for several. Shapes: [point], by start."""

    start: I64
    end: I64
    low: F64
    high: F64
    mean: F64
    """Over time."""
    count: I64

    def __len__(self) -> int:
        """How many."""
        return len(self.start)


def merged(held: Held, bucket: int) -> Points:
    """What can be told apart at a bucket of so many nanoseconds."""
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
