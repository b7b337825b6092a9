"""Whether a series rises over its whole length, how fast, and how certain that is.

The series is cut into bins of equally many points, each represented by its median; the slope is the median of the
slopes of all pairs of bins (Theil 1950, Sen 1968) with Sen's interval. Neighbouring bins are alike on a shared machine,
so the interval is widened by the lag-1 correlation of the residuals (Yue and Wang 2004): a random walk is no trend. The
medians of the four quarters and the slope of the tail separate a lasting rise from one that stops (a cache that fills)
and from a single shift of the level (a neighbour).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.tables.records import F64

MAX_BINS = 40
MIN_POINTS = 8
"""With seven bins a rise by chance is still likely under Sen's interval once that is widened."""
_Z = 1.96
_QUARTER_RATIO = 0.10
"""Each quarter's median must exceed the one before by this share of the whole rise; a straight line has 0.33."""
_TAIL = 0.3
"""The tail: the last 30 % of the bins."""
_MAX_CORRELATION = 0.9


class Trend(Struct, frozen=True, kw_only=True):
    """A straight line through the bins of a series, in its units per unit of x."""

    slope: float
    low: float
    high: float
    """95 % interval of the slope."""
    first: float
    """Value of the line at the first point."""
    last: float
    start: float
    """Level of the first bin: below the line if the series rises faster at first."""
    quarters: tuple[float, float, float, float]
    tail_slope: float
    noise: float
    """Median distance of the bins from the line."""

    @property
    def rise(self) -> float:
        """Rise of the line from the first to the last point."""
        return self.last - self.first

    @property
    def rises(self) -> bool:
        """The slope is above zero with confidence, and no quarter of the series stands still."""
        least = _QUARTER_RATIO * self.rise
        return self.low > 0 and all(b - a >= least for a, b in zip(self.quarters, self.quarters[1:], strict=False))

    def goes_on(self, share: float) -> bool:
        """Whether the tail rises at ``share`` of the slope or more, so that the rise has not ended."""
        return self.tail_slope >= share * self.slope


def fit(x: F64, y: F64) -> Trend | None:
    """The trend of ``y`` over ``x``; None for fewer than ``MIN_POINTS`` points.

    Shapes: float64[point], ``x`` sorted. Cost: O(n) for n points, and O(MAX_BINS^2).
    """
    if len(x) < MIN_POINTS:
        return None
    count = min(MAX_BINS, len(x))
    at, level = _medians(x, count), _medians(y, count)
    slopes = _slopes(at, level)
    if len(slopes) == 0:
        return None
    slope = float(np.median(slopes))
    offset = float(np.median(level - slope * at))
    residuals = level - slope * at - offset
    half = _half_width(len(at), _correlation(residuals))
    middle = len(slopes) / 2
    low = slopes[max(0, int(np.floor(middle - half)))] if middle - half >= 0 else -np.inf
    high = slopes[min(len(slopes) - 1, int(np.ceil(middle + half)))] if middle + half < len(slopes) else np.inf
    tail = max(2, round(_TAIL * len(at)))
    tail_slopes = _slopes(at[-tail:], level[-tail:])
    q1, q2, q3, q4 = (float(np.median(q)) for q in np.array_split(level, 4))
    return Trend(
        slope=slope,
        low=float(low),
        high=float(high),
        first=offset + slope * float(x[0]),
        last=offset + slope * float(x[-1]),
        start=float(level[0]),
        quarters=(q1, q2, q3, q4),
        tail_slope=float(np.median(tail_slopes)) if len(tail_slopes) else 0.0,
        noise=float(np.median(np.abs(residuals))),
    )


def _medians(values: F64, bins: int) -> F64:
    """Median of each of ``bins`` runs of equally many values, the first ones longer by one: float64[bins]."""
    size, longer = divmod(len(values), bins)
    split = longer * (size + 1)
    first = np.median(values[:split].reshape(longer, size + 1), axis=1)
    return np.concatenate((first, np.median(values[split:].reshape(bins - longer, size), axis=1)))


def _slopes(x: F64, y: F64) -> F64:
    """Slopes of all pairs of points, sorted."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    keep = run > 0
    found: F64 = np.sort((y[second] - y[first])[keep] / run[keep])
    return found


def _half_width(count: int, correlation: float) -> float:
    """Half the width of Sen's interval, in ranks of the sorted slopes."""
    variance = count * (count - 1) * (2 * count + 5) / 18
    return _Z * float(np.sqrt(variance * (1 + correlation) / (1 - correlation))) / 2


def _correlation(residuals: F64) -> float:
    """Lag-1 correlation of the residuals; 0 unless it exceeds chance."""
    centred = residuals - residuals.mean()
    power = float((centred**2).sum())
    if power <= 0:
        return 0.0
    return min(_MAX_CORRELATION, max(0.0, float((centred[1:] * centred[:-1]).sum()) / power))
