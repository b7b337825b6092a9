"""Points of series at any level of detail hold the extremes, the area and the number of what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.timeline.series_levels import Held, merged


def held(count: int, seed: int) -> Held:
    """Values of random lengths, some of them with gaps before."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 400, count)
    gap = rng.integers(0, 2, count) * rng.integers(0, 100, count)
    end = np.cumsum(length + gap)
    return Held(end - length, end, rng.random(count))


@pytest.mark.parametrize("bucket", [1, 16, 64, 256, 4096, 1 << 20])
def test_nothing_is_lost(bucket: int) -> None:
    """Lowest, highest, area and count of all points are those of all values; so is each one's own."""
    values = held(2_000, bucket)
    points = merged(values, bucket)
    assert points.count.sum() == len(values)
    assert (points.low.min(), points.high.max()) == (values.value.min(), values.value.max())
    first = np.append(0, np.cumsum(points.count))
    for at in range(len(points)):
        mine = slice(first[at], first[at + 1])
        length = (values.end - values.start)[mine]
        assert points.high[at] == values.value[mine].max()
        assert points.low[at] == values.value[mine].min()
        assert points.mean[at] == pytest.approx((values.value[mine] * length).sum() / length.sum())
        assert (points.start[at], points.end[at]) == (values.start[mine][0], values.end[mine][-1])
        if points.count[at] > 1:  # only what no screen tells apart
            assert length.max() < bucket
            assert len(set((values.start[mine] // bucket).tolist())) == 1


def test_what_is_coarse_enough_stays_itself() -> None:
    """And of nothing there is nothing."""
    values = held(50, 1)
    assert merged(values, 1).count.tolist() == [1] * 50
    empty = Held(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    assert len(merged(empty, 16)) == 0
