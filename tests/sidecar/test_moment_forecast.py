"""The forecast of a condition: at a regular distance in steps, or none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.sidecar import moment_forecast

MS = 1_000_000
ENDS = np.arange(1, 1_001, dtype=np.int64) * 10 * MS


def at(*steps: int) -> np.ndarray:
    """Moments in the middle of these steps."""
    return np.array([step * 10 * MS + 5 * MS for step in steps], np.int64)


@given(every=st.integers(2, 200), first=st.integers(1, 50), count=st.integers(2, 5))
def test_a_regular_distance_is_found(every: int, first: int, count: int) -> None:
    """Whatever the distance, two moments are enough."""
    forecast = moment_forecast.build(ENDS, at(*(first + i * every for i in range(count) if first + i * every < 1_000)))
    if first + every < 1_000:
        assert forecast is not None
        assert (forecast.every, forecast.loose, forecast.period_ns) == (every, 0, every * 10 * MS)


@pytest.mark.parametrize("steps", [(), (5,), (5, 6, 40), (10, 50, 130)])
def test_no_regular_distance_is_no_forecast(steps: tuple[int, ...]) -> None:
    """None, one, and moments at differing distances say nothing of the next."""
    assert moment_forecast.build(ENDS, at(*steps)) is None


def test_distances_may_differ_by_a_tenth() -> None:
    """The difference is the looseness of the forecast: by so many steps more a capture is longer."""
    forecast = moment_forecast.build(ENDS, at(10, 50, 92, 131))
    assert forecast is not None
    assert (forecast.every, forecast.loose) == (40, 3)


def test_the_next_moment_lies_in_the_future() -> None:
    """A moment that was missed is followed by others."""
    forecast = moment_forecast.build(ENDS, at(10, 50))
    assert forecast is not None
    assert forecast.next_ns(1_000 * MS) == 505 * MS + 2 * 400 * MS
