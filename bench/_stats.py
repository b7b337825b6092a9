"""Statistics that the benchmarks share: bootstrap intervals of paired and unpaired ratios."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its interval at ``level``."""

    value: float
    low: float
    high: float
    level: float = 0.95

    def percent(self) -> str:
        """As percent, with the interval."""
        return f"{100 * self.value:+.2f} % ({100 * self.low:+.2f} to {100 * self.high:+.2f})"


def bootstrap(
    samples: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = median,
    *,
    draws: int = 4000,
    level: float = 0.95,
    seed: int = 1,
) -> Interval:
    """Percentile bootstrap of a statistic.

    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    if not samples:
        raise ValueError("no samples")
    rng = random.Random(seed)
    values = sorted(statistic(rng.choices(samples, k=len(samples))) for _ in range(draws))
    tail = (1 - level) / 2
    low, high = values[int(tail * draws)], values[min(draws - 1, int((1 - tail) * draws))]
    return Interval(value=statistic(samples), low=low, high=high, level=level)
