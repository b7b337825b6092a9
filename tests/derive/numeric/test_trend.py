"""Trends: a rise that goes on is told from one that stops, from a shift of the level and from chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.derive.numeric import trend
from stepscope.tables.records import F64

COUNT = 400
X: F64 = np.arange(COUNT, dtype=np.float64)


def noise(seed: int, size: float) -> F64:
    """Independent noise with rare, long outliers, as step times have them."""
    rng = np.random.default_rng(seed)
    found: F64 = rng.normal(0, size, COUNT) + np.where(rng.random(COUNT) < 0.05, 20 * size, 0)
    return found


def fitted(y: F64) -> trend.Trend:
    """The trend of a series, which there must be."""
    found = trend.fit(X, y)
    assert found is not None
    return found


@given(st.floats(-1e3, 1e3), st.floats(-5, 5), st.integers(trend.MIN_POINTS, 300))
def test_a_line_is_found_exactly(start: float, slope: float, count: int) -> None:
    """A straight line has its own slope, level and no noise."""
    found = trend.fit(X[:count], start + slope * X[:count])
    assert found is not None
    assert found.slope == pytest.approx(slope, abs=1e-6)
    assert found.first == pytest.approx(start, abs=1e-3)
    assert found.noise == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_a_rise_in_noise_rises(seed: int) -> None:
    """A rise by half within noise of a tenth is found, and its interval holds the slope."""
    found = fitted(100 + 50 * X / COUNT + noise(seed, 5))
    assert found.rises
    assert found.goes_on(0.3)
    assert found.low <= 50 / COUNT <= found.high


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_rise(seed: int) -> None:
    """Noise alone is no rise."""
    assert not fitted(100 + noise(seed, 5)).rises


def test_a_random_walk_rarely_rises() -> None:
    """What drifts without direction is taken for a rise in less than one of twenty runs."""
    walks = [np.cumsum(np.random.default_rng(seed).normal(0, 1, COUNT)) for seed in range(200)]
    assert sum(fitted(walk).rises and fitted(walk).goes_on(0.4) for walk in walks) < 10


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_one_shift_of_the_level_is_no_rise(at: float) -> None:
    """A level that is shifted once does not rise, wherever the shift is."""
    assert not fitted(100 + 50 * (at * COUNT < X) + noise(1, 3)).rises


@pytest.mark.parametrize("until", [0.25, 0.5, 0.7, 0.8])
def test_what_stops_does_not_go_on(until: float) -> None:
    """A rise that ends within the series is no rise, or one that does not go on."""
    found = fitted(np.minimum(X, until * COUNT) + noise(2, 1))
    assert not (found.rises and found.goes_on(0.4))


def test_a_saw_tooth_does_not_rise() -> None:
    """What rises and falls back again and again stays where it is."""
    assert not fitted(X % 90).rises


def test_too_few_points() -> None:
    """Fewer than the least number of points have no trend."""
    assert trend.fit(X[: trend.MIN_POINTS - 1], X[: trend.MIN_POINTS - 1]) is None
