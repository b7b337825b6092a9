"""What two sides of an experiment differ by, and how often chance alone is taken for a difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.experiments import statistics, student
from stepscope.experiments.statistics import Effect, paired, unpaired, verdict, within
from stepscope.tables.records import F64

TIMES = st.floats(1e-3, 1e12)
MS = 1e6


def _runs(random: np.random.Generator, count: int, *, noise: float = 0.02, factor: float = 1.0) -> list[float]:
    """Mean step times of whole runs that vary as lognormal."""
    return [1e8 * factor * math.exp(value) for value in random.normal(0.0, noise, count)]


def _steps(random: np.random.Generator, count: int, *, ms: float, phi: float, spread: float = 0.1) -> F64:
    """Step times of one run, ns: lognormal, each like the one before (AR(1))."""
    shocks = random.normal(0.0, spread * math.sqrt(1 - phi * phi), count)
    logs = [float(random.normal(0.0, spread))]
    for shock in shocks[1:]:
        logs.append(phi * logs[-1] + float(shock))
    found: F64 = ms * MS * np.exp(np.array(logs))
    return found


@pytest.mark.parametrize(
    ("level", "freedom", "t"),
    [
        (0.95, 1, 12.706205),
        (0.95, 2, 4.302653),
        (0.95, 30, 2.042272),
        (0.99, 1, 63.656741),
        (0.99, 4, 4.604095),
        (0.99, 10, 3.169273),
        (0.99, 120, 2.617421),
        (0.999, 5, 6.868827),
        (0.90, 7, 1.894579),
        (0.99, 1e9, 2.575829),
    ],
)
def test_quantiles_are_those_of_the_tables(level: float, freedom: float, t: float) -> None:
    """Student's t of NIST/SEMATECH e-Handbook 1.3.6.7.2, and of R's ``qt`` for more digits."""
    assert student.student_reach(level, freedom) == pytest.approx(t, rel=1e-6)


@given(st.floats(0.5, 0.99999), st.floats(1.0, 1e5))
def test_quantile_is_the_inverse_of_the_tail(level: float, freedom: float) -> None:
    """The tail beyond the quantile is what the level leaves, for any level and any degrees of freedom."""
    t = student.student_reach(level, freedom)
    assert student.student_tail(t, freedom) == pytest.approx(1 - level, rel=1e-6)


def test_what_both_of_a_pair_share_falls_out() -> None:
    """A round that is slow on both sides moves neither the ratio nor its interval."""
    host = [1.0, 3.0, 0.5, 7.0]
    found = paired([10 * h for h in host], [9 * h for h in host])
    assert (found.ratio, found.low, found.high) == pytest.approx((0.9, 0.9, 0.9))
    assert found.runs == 4
    assert found.covers_runs


def test_interval_of_pairs_is_students() -> None:
    """By hand: logarithms -1, 0, 1: mean 0, standard error 1 / sqrt(3), two degrees of freedom."""
    found = paired([1.0, 1.0, 1.0], [math.exp(-1), 1.0, math.e], level=0.95)
    assert found.ratio == pytest.approx(1.0)
    assert math.log(found.high) == pytest.approx(4.302653 / math.sqrt(3))
    assert math.log(found.low) == pytest.approx(-4.302653 / math.sqrt(3))
    assert found.smallest == pytest.approx(found.high - 1)


def test_interval_of_groups_is_welchs() -> None:
    """By hand: variances 1 of three and 4 of three: error sqrt(5 / 3), 2 * 25 / 17 degrees of freedom."""
    found = unpaired([math.exp(v) for v in (-1, 0, 1)], [math.exp(v) for v in (-2, 0, 2)], level=0.95)
    reach = math.sqrt(5 / 3) * student.student_reach(0.95, 50 / 17)
    assert math.log(found.high) == pytest.approx(reach)


def test_one_run_against_a_group_takes_the_groups_variation() -> None:
    """A single run has no variation to see: it varies like the group, in which it may be one more."""
    group = [math.exp(v) for v in (-1, 0, 1)]
    found = unpaired(group, [1.0], level=0.95)
    assert math.log(found.high) == pytest.approx(math.sqrt(4 / 3) * 4.302653)
    assert unpaired([1.0], group, level=0.95).high == pytest.approx(found.high)


@given(st.lists(st.tuples(TIMES, TIMES), min_size=3, max_size=12))
def test_sides_are_alike(pairs: list[tuple[float, float]]) -> None:
    """Exchanged sides give the inverse ratio and the inverse ends, paired or not."""
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    for compare in (paired, unpaired):
        one, other = compare(before, after), compare(after, before)
        assert math.log(one.ratio) == pytest.approx(-math.log(other.ratio), abs=1e-9)
        assert math.log(one.low) == pytest.approx(-math.log(other.high), rel=1e-6, abs=1e-9)


@given(st.lists(st.tuples(TIMES, TIMES), min_size=3, max_size=12), st.floats(1e-3, 1e3))
def test_unit_does_not_matter(pairs: list[tuple[float, float]], unit: float) -> None:
    """Times in another unit give the same ratio and interval."""
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    for compare in (paired, unpaired):
        one, other = compare(before, after), compare([unit * a for a in before], [unit * b for b in after])
        assert math.log(one.high) == pytest.approx(math.log(other.high), rel=1e-6, abs=1e-6)


def test_more_looks_need_more() -> None:
    """The interval for one of five looks is that of the level that each look has: 99.8 % for 99 %."""
    before, after = [1.0, 1.1, 0.9, 1.0], [1.2, 1.1, 1.3, 1.2]
    assert paired(before, after, looks=5).high == pytest.approx(paired(before, after, level=0.998).high)
    assert paired(before, after, looks=5).level == 0.99


@pytest.mark.parametrize("compare", [paired, unpaired])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_times_have_logarithms(compare: object, bad: float) -> None:
    """A time that is not above 0 is refused."""
    assert callable(compare)
    with pytest.raises(ValueError, match="not above 0"):
        compare([1.0, 1.0, bad], [1.0, 1.0, 1.0])


def test_too_few_runs() -> None:
    """Nothing is said of two pairs, two runs, or a side without any."""
    with pytest.raises(ValueError, match="2 pairs; expected 3"):
        paired([1.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="1 and 1 runs"):
        unpaired([1.0], [1.0])
    with pytest.raises(ValueError, match="0 and 3 runs"):
        unpaired([], [1.0, 1.0, 1.0])


def test_two_runs_that_differ_much_have_finite_ends() -> None:
    """An interval that reaches beyond all numbers ends at one that can be written."""
    found = unpaired([1e-9, 1e9], [1.0])
    assert 0.0 < found.low < found.high < math.inf


@pytest.mark.parametrize(
    ("low", "ratio", "high", "over", "said"),
    [
        (1.01, 1.08, 1.15, 0.0, "slower"),
        (0.80, 0.90, 0.99, 0.0, "faster"),
        (0.99, 1.05, 1.10, 0.0, "undecided"),
        (1.00, 1.00, 1.00, 0.0, "same"),
        (1.01, 1.02, 1.04, 0.05, "same"),
        (0.97, 0.98, 1.02, 0.05, "same"),
        (1.01, 1.04, 1.07, 0.05, "undecided"),
        (1.01, 1.06, 1.11, 0.05, "slower"),
        (0.99, 1.06, 1.12, 0.05, "undecided"),
        (0.80, 0.90, 0.99, 0.05, "faster"),
        (0.92, 0.96, 0.99, 0.05, "undecided"),
    ],
)
def test_verdict(low: float, ratio: float, high: float, over: float, said: str) -> None:
    """A change is claimed if the interval excludes 1 and the ratio is beyond the limit; none, if it lies within it."""
    effect = Effect(ratio=ratio, low=low, high=high, smallest=0.1, runs=5)
    assert verdict(effect, over=over) == said


def test_equal_runs_seldom_differ() -> None:
    """Of 2,000 pairs of groups of equal runs, whose steps correlate and whose host drifts, about 1 % differ."""
    random = np.random.default_rng(1)
    claims = {"paired": 0, "unpaired": 0}
    for _ in range(2000):
        drift = np.cumsum(random.normal(0.0, 0.02, 5))
        noise = 0.1 / math.sqrt(20) * random.standard_t(8, (2, 5)) + random.normal(0.0, 0.01, (2, 5))
        before, after = (1e8 * np.exp(drift + noise)).tolist()
        claims["paired"] += verdict(paired(before, after)) != "undecided"
        claims["unpaired"] += verdict(unpaired(before, after)) != "undecided"
    assert max(claims.values()) <= 30, claims


@pytest.mark.parametrize("compare", [paired, unpaired])
def test_equal_runs_seldom_differ_at_any_of_several_looks(compare: object) -> None:
    """Of 1,000 trials that may stop after each round from the third to the eighth, at most 1.5 % claim a change."""
    assert callable(compare)
    random = np.random.default_rng(2)
    claims = 0
    for _ in range(1000):
        before, after = _runs(random, 8), _runs(random, 8)
        claims += any(verdict(compare(before[:n], after[:n], looks=6)) != "undecided" for n in range(3, 9))
    assert claims <= 15


def test_planted_slow_down_is_found() -> None:
    """8 % between five runs a side that vary by 2 % is found in at least 95 % of 1,000 comparisons of groups."""
    random = np.random.default_rng(3)
    found = sum(verdict(unpaired(_runs(random, 5), _runs(random, 5, factor=1.08))) == "slower" for _ in range(1000))
    assert found >= 950


def test_pairs_find_it_where_the_host_drifts() -> None:
    """Ten rounds find 8 % in at least 99 % of 500 cases on a host whose speed wanders by 3 % from round to round."""
    random = np.random.default_rng(4)
    found = 0
    for _ in range(500):
        drift = np.exp(np.cumsum(random.normal(0.0, 0.03, 10)))
        before, after = drift * _runs(random, 10), drift * _runs(random, 10, factor=1.08)
        found += verdict(paired(before.tolist(), after.tolist())) == "slower"
    assert found >= 495


@pytest.mark.parametrize(("count", "ms", "phi"), [(200, 50, 0.0), (200, 50, 0.5), (300, 50, 0.9), (24, 300, 0.3)])
def test_equal_steps_seldom_differ(count: int, ms: float, phi: float) -> None:
    """Of 500 pairs of runs that are equal but for steps that correlate, at most 3 % differ in their medians.

    1 % is meant; 500 cases show 3 % once in ten thousand if it holds.
    """
    random = np.random.default_rng(5)
    claims = sum(
        verdict(within(_steps(random, count, ms=ms, phi=phi), _steps(random, count, ms=ms, phi=phi))) != "undecided"
        for _ in range(500)
    )
    assert claims <= 15


def test_steps_find_a_planted_slow_down() -> None:
    """8 % between two runs of 400 steps of 50 ms that vary by 10 % and hardly correlate."""
    random = np.random.default_rng(6)
    found = sum(
        verdict(within(_steps(random, 400, ms=50, phi=0.2), 1.08 * _steps(random, 400, ms=50, phi=0.2))) == "slower"
        for _ in range(100)
    )
    assert found >= 95


def test_steps_give_the_same_answer_each_time() -> None:
    """Chance has a fixed seed, and says that runs are not covered."""
    random = np.random.default_rng(7)
    before, after = _steps(random, 100, ms=50, phi=0.2), _steps(random, 100, ms=50, phi=0.2)
    assert within(before, after) == within(before, after)
    assert not within(before, after).covers_runs
    assert within(before, after).runs == 1


def test_other_numbers_of_a_run() -> None:
    """A mean or quantile is compared like the median; blocks come from the steps whose parts the values are."""
    random = np.random.default_rng(8)
    before = _steps(random, 300, ms=50, phi=0.0)
    for statistic in (statistics.mean, statistics.quantile(0.9)):
        found = within(before, 2 * before, blocks=(8, 8), statistic=statistic)
        assert found.ratio == pytest.approx(2.0)
        assert found.low < 2.0 < found.high


def test_blocks_last_a_second_where_the_run_is_long_enough() -> None:
    """Six at least, twelve at most."""
    assert statistics.blocks_of(np.full(100, 10 * MS)) == 6
    assert statistics.blocks_of(np.full(100, 85 * MS)) == 8
    assert statistics.blocks_of(np.full(10_000, 85 * MS)) == 12


def test_long_runs_are_thinned_without_loss() -> None:
    """Blocks of ten thousand steps give the interval that the theory of medians gives."""
    random = np.random.default_rng(9)
    before, after = (_steps(random, 60_000, ms=1, phi=0.0) for _ in range(2))
    found = within(before, after)
    expected = 2.9 * math.sqrt(2) * 0.1 * math.sqrt(math.pi / 2 / 60_000)
    assert 0.5 * expected < found.smallest < 2.0 * expected


def test_equal_steps_are_no_trend() -> None:
    """A part that most steps lack is as certain as the steps that have it, not one long run of ties."""
    random = np.random.default_rng(10)
    part = np.where(random.random(600) < 0.3, 1e6, 0.0)
    found = within(part, part[::-1].copy(), blocks=(12, 12), statistic=statistics.mean)
    expected = 2.9 * math.sqrt(2 * 0.7 / 0.3 / 600)
    assert 0.5 * expected < found.smallest < 2 * expected


def test_shares_of_samples_vary_more_than_independent_ones() -> None:
    """By hand: half of 100 samples a side, each counted for half a sample: error sqrt(0.5 / 25 + 0.5 / 25)."""
    found = statistics.shares(0.5, 0.5, samples=(100, 100))
    assert math.log(found.high) == pytest.approx(2.575829 * 0.2, rel=1e-6)
    assert not found.covers_runs
    with pytest.raises(ValueError, match="fewer than 10 samples"):
        statistics.shares(0.09, 0.5, samples=(100, 100))


def test_parts_that_are_seldom_there_are_refused() -> None:
    """A number that is 0 in some resampled run has no ratio; nor have a few steps."""
    part = np.zeros(100)
    part[3] = 1.0
    with pytest.raises(ValueError, match="not above 0 in every block"):
        within(np.ones(100), part, blocks=(6, 6), statistic=statistics.mean)
    with pytest.raises(ValueError, match="23 and 100 steps; expected 24"):
        within(np.ones(23), np.ones(100))
