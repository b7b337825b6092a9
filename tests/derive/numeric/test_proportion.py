"""Intervals of shares that were estimated from samples."""

from __future__ import annotations

import pytest

from stepscope.derive.numeric import proportion


def test_interval_of_a_share() -> None:
    """It holds the share, is narrower with more samples, and is everything without any."""
    low, high = proportion.interval(0.3, 100)
    assert (round(low, 3), round(high, 3)) == (0.219, 0.396)
    assert proportion.interval(0.3, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("weights", "expected"), [([5, 5, 5, 5], 4), ([1, 0, 0, 0], 1), ([25] * 100 + [2500], 4), ([], 0), ([0], 0)]
)
def test_few_heavy_samples_count_as_few(weights: list[int], expected: float) -> None:
    """Where few samples have most of the weight, as many shares are possible as with few samples."""
    assert proportion.effective(weights) == pytest.approx(expected, rel=0.02)
