"""Change points of series whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.experiments import change_points
from stepscope.experiments.change_points import Splits, agreed, best, chance, change, discoveries, needed, points

RUNS = 60


def test_scores_are_those_of_the_rank_sum_test() -> None:
    """With ties: of 1 2 2 | 3 5 the ranks are 1, 2.5, 2.5, 4, 5, whose later sum is 9 where 6 is expected."""
    values = np.array([[1.0, 2.0, 2.0, 3.0, 5.0]])
    spread = 4 + 0.25 + 0.25 + 1 + 4
    (score,) = change_points.scores(values, np.array([3]), np.array([5]))[0]
    assert score == pytest.approx(3.0 / np.sqrt(2 * 3 / (5 * 4) * spread))
    assert change_points.scores(np.ones((1, 5)), np.array([3]), np.array([5]))[0, 0] == 0.0


@pytest.mark.parametrize("rare", [False, True])
def test_equal_runs_keep_the_level(*, rare: bool) -> None:
    """Of 2,000 series without a change at most 5 % have a chance of 5 % or less, of rare counts, too."""
    draw = np.random.default_rng(1)
    values = draw.poisson(0.3, (2000, RUNS)).astype(float) if rare else draw.standard_cauchy((2000, RUNS))
    found = best([values], change_points.splits(RUNS)).chance
    assert 0.001 < np.mean(found <= 0.05) <= 0.05
    assert np.mean(found <= 0.01) <= 0.01


@pytest.mark.parametrize("level", [0.01, 1e-5])
def test_needed_is_the_inverse_of_the_chance(level: float) -> None:
    """Half of the level is that of windows, where there are any."""
    for among, of_splits in ((change_points.splits(RUNS), level / 2), (Splits(55, 55, 60), level)):
        assert chance(needed(level, among), among) == pytest.approx(of_splits, rel=1e-6)


def test_numbers_have_to_agree() -> None:
    """The smaller score where both have one sign, else nothing."""
    one, other = np.array([[3.0, -2.0, 4.0]]), np.array([[5.0, -4.0, -1.0]])
    assert agreed([one, other]).tolist() == [[3.0, -2.0, 0.0]]


def test_wrong_claims_are_held() -> None:
    """The example of Benjamini and Hochberg (1995): of 15 tests at 5 % the four smallest."""
    listed = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262, 0.5719, 0.6528]
    found = discoveries(np.array([*listed, 0.759, 1.0])[::-1], 0.05)
    assert found[::-1].tolist() == [True] * 4 + [False] * 11
    assert discoveries(np.zeros(0)).tolist() == []


def test_points_are_found_where_they_are() -> None:
    """One change, two that undo each other, three, and none; only those after the old runs where that is asked."""
    draw = np.random.default_rng(2)

    def series(*levels: float) -> np.ndarray:
        return np.repeat(levels, RUNS // len(levels))[None] + draw.normal(0, 0.1, (1, RUNS))

    everywhere = change_points.splits(RUNS)
    assert points(series(0, 1), everywhere) == [30]
    assert points(series(0, 1, 0), everywhere) == [20, 40]
    assert points(series(0, 2, 4, 0), everywhere) == [15, 30, 45]
    assert points(series(0, 0), everywhere) == []
    assert points(series(0, 1), change_points.splits(RUNS, old=RUNS)) == []


def test_the_difference_of_means() -> None:
    """Has the interval of Welch's test; of what was not there before there is no ratio."""
    one, other = np.array([9.0, 10.0, 11.0, 10.0]), np.array([19.0, 21.0, 20.0, 20.0])
    found = change(one, other)
    assert (found.before, found.after, found.ratio) == (10.0, 20.0, 2.0)
    assert found.reach == pytest.approx(3.7074 * np.sqrt(2 * (2 / 3) / 4), rel=1e-3)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 2.0 < found.high
    assert change(np.zeros(4), other).ratio is None


def test_what_would_have_been_seen_is_seen() -> None:
    """Of 400 series with a change of the size that is said, nine of ten are claimed; of a third of it, hardly any."""
    draw = np.random.default_rng(3)
    among = change_points.splits(RUNS)
    noise = draw.normal(100.0, 5.0, (400, RUNS))
    size = float(np.median(change_points.smallest(noise, needed(1e-4, among), among)))
    for factor, low, high in ((1.0, 0.8, 1.0), (1 / 3, 0.0, 0.05)):
        changed = noise.copy()
        changed[:, RUNS // 2 :] += 100.0 * size * factor
        assert low <= np.mean(best([changed], among).chance <= 1e-4) <= high
    assert change_points.smallest(np.zeros((1, RUNS)), 4.0, among).tolist() == [np.inf]
    few = change_points.splits(10)
    assert change_points.smallest(np.ones((1, 10)), needed(1e-4, few), few).tolist() == [np.inf]
