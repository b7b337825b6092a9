"""Where a series of runs changed, whether by more than chance, and the smallest change that would have been seen.

The scores are those of the rank-sum test (Wilcoxon), corrected for ties, of every split of a series into the runs
before and those after; the largest is judged as the largest of many (maximally selected rank statistics). What changed
and was undone differs little by splits, so windows are compared with the runs around them, too, each as one of many
(Bonferroni). Ranks, because runs have outliers and shares of rare lines are mostly 0. Runs are taken as exchangeable: a
slow drift is a change.

Several numbers of the same runs may have to agree (a share and a time a step): the score is then the smaller one where
both have the same sign, else 0, and the level holds for either being unchanged (Berger's intersection-union test).

Source: Miller & Siegmund, Maximally selected chi square statistics, Biometrics 38, 1982 (``chance``); Lausen &
Schumacher, Maximally selected rank statistics, Biometrics 48, 1992; Benjamini & Hochberg, Controlling the false
discovery rate, J. R. Statist. Soc. B 57, 1995; Berger, Multiparameter hypothesis testing, Technometrics 24, 1982.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.experiments.student import student_reach

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.tables.records import F64, I64, Bool

LEVEL = 0.01
"""Share of claims that chance may make, of all claims of an answer."""
MIN_RUNS = 5
"""Fewest runs on each side of a change."""
MAX_EDGES = 48
"""Most runs at which a window begins or ends that is looked at: each pair of them is a test."""
SEEN = 0.9
"""Share of cases in which the smallest visible change is seen."""
_SEEN_REACH = NormalDist().inv_cdf(SEEN)
"""Standard errors below which a normal variable lies in ``SEEN`` of cases."""
_HALF = 0.5


class Splits(Struct, frozen=True):
    """The splits that are looked at: by the number of runs before, from ``first`` to ``last``, of ``runs``."""

    first: int
    last: int
    runs: int

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self.first <= self.last


class Change(Struct, frozen=True, kw_only=True):
    """How the mean differs from before to after."""

    before: float
    after: float
    reach: float
    """Half the width of the interval of ``after - before``, at ``1 - LEVEL``. The split was chosen where the runs
    differ most, which is not in it."""
    ratio: float | None
    """After / before, with its interval; None: nothing was there before."""
    low: float | None
    high: float | None


def splits(runs: int, old: int = 0) -> Splits:
    """Those with enough runs on both sides. ``old``: only those after that many runs."""
    return Splits(max(MIN_RUNS, old), runs - MIN_RUNS, runs)


def sums(values: F64) -> tuple[F64, F64]:
    """How far ranks lie from their mean, added up run by run, and the sum of their squares.

    Shapes: ``values`` float64[series, run]; the results float64[series, run + 1] and float64[series, 1].
    """
    series, runs = values.shape
    ranks = np.empty_like(values)
    for row, ordered in enumerate(np.sort(values, axis=1)):
        low = np.searchsorted(ordered, values[row], side="left")
        ranks[row] = (low + np.searchsorted(ordered, values[row], side="right") + 1) / 2
    away = ranks - (runs + 1) / 2
    return np.concatenate((np.zeros((series, 1)), np.cumsum(away, axis=1)), axis=1), (away * away).sum(
        axis=1, keepdims=True
    )


def scores(values: F64, begins: I64, ends: I64) -> F64:
    """Standard scores of the runs from ``begins`` until before ``ends`` against all others, positive where larger.

    Shapes: ``values`` float64[series, run]; ``begins`` and ``ends`` int64[window]; the result float64[series, window].
    """
    runs = values.shape[1]
    added, spread = sums(values)
    count = ends - begins
    error = np.sqrt(count * (runs - count) / (runs * max(runs - 1, 1)) * spread)
    found = np.zeros(error.shape)
    np.divide(added[:, ends] - added[:, begins], error, out=found, where=error > 0)
    return found


def agreed(found: Sequence[F64]) -> F64:
    """The score where all agree in sign: the smallest; else 0."""
    low, high = np.minimum.reduce(list(found)), np.maximum.reduce(list(found))
    return np.where(low > 0, low, np.where(high < 0, high, 0.0))


class Best(Struct, frozen=True, kw_only=True):
    """The clearest change of each of several series."""

    chance: F64
    """float64[series]: at most the probability that equal runs show one as clear."""
    begin: I64
    """int64[series]: runs before it."""
    end: I64
    """int64[series]: runs before it was undone; all runs if it stands."""


def best(numbers: Sequence[F64], among: Splits) -> Best:
    """The clearest split, or the clearest window that differs from what is before and after it, of each series.

    ``numbers``: float64[series, run] each, which have to agree. Both kinds are tested, so each has half of the error.
    """
    at = np.arange(among.first, among.last + 1)
    chances, which = _clearest(numbers, at, np.full(len(at), among.runs), lambda score: chance(score, among))
    found = Best(chance=chances, begin=at[which], end=np.full(len(chances), among.runs))
    begins, ends = _windows(among)
    if not len(begins):
        return found
    windowed, which = _clearest(
        numbers, begins, ends, lambda score: min(1.0, len(begins) * math.erfc(abs(score) / math.sqrt(2.0)))
    )
    clearer = windowed < found.chance
    return Best(
        chance=np.minimum(1.0, 2.0 * np.minimum(found.chance, windowed)),
        begin=np.where(clearer, begins[which], found.begin),
        end=np.where(clearer, ends[which], found.end),
    )


def _clearest(numbers: Sequence[F64], begins: I64, ends: I64, judge: Callable[[float], float]) -> tuple[F64, I64]:
    agreeing = agreed([scores(one, begins, ends) for one in numbers])
    which = np.abs(agreeing).argmax(axis=1)
    found = agreeing[np.arange(len(agreeing)), which]
    return np.array([judge(float(score)) for score in found]), which


def _windows(among: Splits) -> tuple[I64, I64]:
    """Begins and ends of the windows that are looked at, of ``MIN_RUNS`` or more and with as many on each side."""
    edges = np.unique(np.linspace(among.first, among.last, min(MAX_EDGES, among.last - among.first + 1)).astype(int))
    begins, ends = (edges[one] for one in np.triu_indices(len(edges), 1))
    kept = ends - begins >= MIN_RUNS
    return begins[kept], ends[kept]


def chance(score: float, among: Splits) -> float:
    """At most the probability that equal runs have a split of this score or a larger one, to either side."""
    b = abs(score)
    if b <= 1.0:
        return 1.0
    each = math.erfc(b / math.sqrt(2.0))
    first, last = among.first / among.runs, among.last / among.runs
    density = math.exp(-b * b / 2.0) / math.sqrt(2.0 * math.pi)
    whole = density * ((b - 1.0 / b) * math.log(last * (1.0 - first) / (first * (1.0 - last))) + 4.0 / b)
    return min(1.0, whole, each * (among.last - among.first + 1))


def needed(level: float, among: Splits) -> float:
    """The score of a split whose chance is ``level``, while windows have half of the error."""
    level = level / 2.0 if len(_windows(among)[0]) else level
    low, high = 1.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle, among) > level else (low, middle)
    return high


def discoveries(chances: F64, level: float = LEVEL) -> Bool:
    """Which of many tests are claimed, so that on average at most ``level`` of the claims are wrong. bool[test]."""
    order = np.argsort(chances, kind="stable")
    below = chances[order] <= level * np.arange(1, len(chances) + 1) / max(len(chances), 1)
    kept = np.zeros(len(chances), np.bool_)
    kept[order[: int(np.flatnonzero(below).max(initial=-1)) + 1]] = True
    return kept


def points(numbers: F64, among: Splits, level: float = LEVEL) -> list[int]:
    """Splits of one series at its changes, in order: the clearest among these, then those of the runs between.

    ``numbers``: float64[number, run], which have to agree.
    """
    if not among:
        return []
    found = best([row[None] for row in numbers], among)
    if found.chance[0] > level:
        return []
    edges = [0, *_exact(numbers, int(found.begin[0]), int(found.end[0])), among.runs]
    inner = [
        [begin + one for one in points(numbers[:, begin:end], splits(end - begin), level)]
        for begin, end in pairwise(edges)
    ]
    return _repartitioned(numbers, sorted({*edges[1:-1], *(one for part in inner for one in part)}))


def _repartitioned(numbers: F64, found: Sequence[int]) -> list[int]:
    """Each change once more, between its neighbours alone: at first, runs beyond them disturb where it is.

    Source: Bai, Estimating multiple breaks one at a time, Econometric Theory 13, 1997.
    """
    edges = [0, *found, numbers.shape[1]]
    for place in range(1, len(edges) - 1):
        begin, end = edges[place - 1], edges[place + 1]
        edges[place] = begin + _split(numbers[:, begin:end])
    return edges[1:-1]


def _exact(numbers: F64, begin: int, end: int) -> list[int]:
    """The edges of a window, which were looked for among some only: the best split on the way to the other edge."""
    runs = numbers.shape[1]
    if end == runs:
        return [begin]
    first, last = _split(numbers[:, :end]), begin + _split(numbers[:, begin:])
    return [first, last] if last - first >= MIN_RUNS else [begin, end]


def _split(numbers: F64) -> int:
    at = np.arange(MIN_RUNS, numbers.shape[1] - MIN_RUNS + 1)
    _, which = _clearest([row[None] for row in numbers], at, np.full(len(at), numbers.shape[1]), abs)
    return int(at[which[0]])


def change(before: F64, after: F64) -> Change:
    """The means of two groups of runs, and how they differ (Welch; of the ratio by its logarithm)."""
    means = float(before.mean()), float(after.mean())
    errors = [float(side.var(ddof=1)) / len(side) if len(side) > 1 else 0.0 for side in (before, after)]
    reach = math.sqrt(sum(errors)) * _reach(errors, (len(before), len(after)))
    if min(means) <= 0.0:
        return Change(before=means[0], after=means[1], reach=reach, ratio=None, low=None, high=None)
    relative = [error / (mean * mean) for error, mean in zip(errors, means, strict=True)]
    ratio = means[1] / means[0]
    factor = math.exp(min(math.sqrt(sum(relative)) * _reach(relative, (len(before), len(after))), 700.0))
    return Change(
        before=means[0], after=means[1], reach=reach, ratio=ratio, low=ratio / factor, high=min(ratio * factor, 1e300)
    )


def smallest(values: F64, score: float, among: Splits) -> F64:
    """The change of the mean, as a share of it, that reaches this score in ``SEEN`` of cases at the middlemost split.

    The variation is that of neighbouring runs, so that changes are not in it. Infinite where the mean is 0.
    Shapes: ``values`` float64[series, run]; the result float64[series].
    """
    split = min(max(among.runs // 2, among.first), among.last)
    spread = np.sqrt((np.diff(values, axis=1) ** 2).mean(axis=1) / 2.0)
    mean = values.mean(axis=1)
    found = np.full(len(values), np.inf)
    shift = _shift(score + _SEEN_REACH, split, among.runs)
    if math.isfinite(shift):
        np.divide(shift * spread, mean, out=found, where=mean > 0)
    return found


def _shift(score: float, split: int, runs: int) -> float:
    """Standard deviations between two groups of normal values whose ranks have this score on average.

    Ranks saturate: their score has an upper bound, which no change exceeds. Then infinite. Source: the mean of the
    Mann-Whitney statistic, n m P(X < Y), and P = normal((b - a) / sqrt(2) / deviation).
    """
    over_half = score / math.sqrt(12.0 * split * (runs - split) / (runs + 1))
    return math.sqrt(2.0) * NormalDist().inv_cdf(0.5 + over_half) if over_half < _HALF else math.inf


def _reach(squares: Sequence[float], runs: tuple[int, int]) -> float:
    """Standard errors of the interval, with the degrees of freedom of Welch and Satterthwaite."""
    whole = sum(squares)
    if whole <= 0.0:
        return 0.0
    below = sum(square * square / max(count - 1, 1) for square, count in zip(squares, runs, strict=True))
    return student_reach(1.0 - LEVEL, whole * whole / below)
