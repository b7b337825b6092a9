"""Intervals of shares that were estimated from samples, or from timed steps where others were only counted."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.derive.numeric import proportion
from stepscope.tables.records import F64

ALL = 1500
WINDOW = 25
WINDOWS = 10


def run(rng: np.random.Generator, every: int, heavy: float) -> tuple[F64, F64]:
    """A callback's time in each of 1,500 steps of 16 ms, most of it in each ``every``-th, and the steps' times."""
    each: F64 = np.where(np.arange(ALL) % every == 0, heavy, 0.01) * rng.uniform(0.7, 1.3, ALL)
    return each, 16 * rng.uniform(0.8, 1.4, ALL) + each


def seen(rng: np.random.Generator, each: F64, whole: F64) -> tuple[float, float]:
    """The share and its reach by ten windows of 25 steps at random, apart."""
    starts = np.sort(rng.choice(ALL // (2 * WINDOW), WINDOWS, replace=False)) * 2 * WINDOW + rng.integers(0, WINDOW)
    at = (starts[:, None] + np.arange(WINDOW)).ravel()
    groups = np.arange(WINDOWS) * WINDOW
    return each[at].sum() / whole[at].sum(), proportion.reach(each[at], whole[at], groups, ALL)


@pytest.mark.parametrize(("every", "least"), [(1, 0.9), (7, 0.93), (20, 0.93)])
def test_it_holds_the_share_of_all_steps(every: int, least: float) -> None:
    """In 95 of 100 runs about, however rare the calls are that take the time; more often where they come regularly."""
    rng, held = np.random.default_rng(7), 0
    for _ in range(300):
        each, whole = run(rng, every, 20.0)
        share, off = seen(rng, each, whole)
        held += abs(share - each.sum() / whole.sum()) <= off
    assert held >= least * 300


def test_what_each_step_has_is_known_better_than_what_few_have() -> None:
    """The same share: 1 ms in every step, or 20 ms in each twentieth."""
    rng = np.random.default_rng(7)
    few, many = (seen(rng, *run(rng, every, float(every)))[1] for every in (20, 1))
    assert few > 5 * many


def test_where_all_steps_were_timed_it_is_exact() -> None:
    """There is no other step that could have been another."""
    each, whole = run(np.random.default_rng(7), 20, 20.0)
    assert proportion.reach(each, whole, np.array([0]), ALL) == 0.0


def test_neighbours_that_are_alike_are_one_witness() -> None:
    """Ten windows in five of which each step has the time say less than their 250 steps would."""
    each = np.repeat([4.0, 0.0] * 5, WINDOW)
    whole = np.full(len(each), 16.0)
    apart = proportion.reach(each, whole, np.arange(len(each)), ALL)
    assert proportion.reach(each, whole, np.arange(WINDOWS) * WINDOW, ALL) > 4 * apart


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
