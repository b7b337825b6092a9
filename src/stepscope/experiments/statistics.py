"""How much two sides of an experiment differ, with an interval, and the smallest difference that could have been seen.

Three designs, from the strongest to the weakest:

- ``paired``: whole runs in rounds, one of each side a round. What slows a round slows both and cancels.
- ``unpaired``: groups of runs not made in rounds (Welch's t; Student's with two runs a side). With few rounds
  it finds more than ``paired``, which halves the degrees of freedom: 8 % between five runs a side that vary by 2 % in
  98 % of cases, ``paired`` in 82 %.
- ``within``: one run a side. Steps of a run are not independent, so blocks of them are resampled. Differences between
  runs are not in it, and they are often larger than those within one.

Ratios are of times, after divided by before: below 1 is faster. Everything is computed on logarithms, where a factor is
a distance and a few slow runs weigh less. An interval holds at its level although the data were looked at ``looks``
times with a right to stop, or although it is one of ``looks`` comparisons: each look has its share of the error.

Source: Welch, The generalization of Student's problem, Biometrika 34, 1947; Kuensch, The jackknife and the bootstrap
for general stationary observations, 1989 (blocks); Bonferroni's inequality (looks).
"""

from __future__ import annotations

import math
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.stacks.profile_difference import DISPERSION
from stepscope.experiments.student import NORMAL_FROM, student_reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.tables.records import F64

LEVEL = 0.99
"""Level of claims: one comparison in a hundred of equal programs shows a difference."""
MIN_PAIRS = 3
"""Two pairs give a useless interval: 64 standard errors to each side at 99 %."""
FEW_RUNS = 2
"""Runs a side that vary as one program does (Student's t): two runs say next to nothing of how their own side varies,
and Welch's t then asks for up to 127 standard errors where 14 hold the level."""
RUN_SPREAD = 0.1
"""Standard deviation assumed between runs of one program where one run a side shows none. Source:
``profile_difference.HOST_SPREAD``, measured on a busy host."""
MAX_RUNS = 200
"""Most runs a side that are advised."""
MIN_STEPS = 24
"""Fewest steps of a run that can be compared with another run: four in each of the fewest blocks."""
MIN_BLOCKS, MAX_BLOCKS = 6, 12
"""Blocks of a run. More of them are shorter, and short blocks of steps that go up and down together vary too little:
with 12, of 2,000 simulated equal runs of 10 s 0.7 % differ where steps are independent, 1.5 % (median) and 1.9 % (mean)
where neighbouring ones correlate by 0.9."""
MIN_SAMPLES = 10
"""Fewest stack samples whose share is compared. Source: the usual rule for the normal approximation of a binomial."""
BLOCK_NS = 1e9
"""Shortest block, where the run has enough seconds for ``MIN_BLOCKS`` of them."""
DRAWS = 400
"""Resampled runs: the error of the standard deviation that they give is 4 %."""
_MOST_OF_A_BLOCK = 512
"""Longer blocks are replaced by this many of their quantiles, so that long runs cost no more than short ones."""
_MOST_CORRELATED = 0.95
"""Neighbouring steps that correlate more are a trend, which no run of this length can tell from chance."""
_FAR = 700.0
"""Logarithms beyond it have no number: few runs that vary much."""

Verdict = Literal["faster", "slower", "same", "undecided"]


class Statistic(Protocol):
    """A number of a run's steps, computed along the last axis: ``median``, ``mean``, ``quantile(0.9)``."""

    def __call__(self, values: F64) -> F64:
        """The number of each row."""


class Effect(Struct, frozen=True, kw_only=True):
    """A ratio of two times (after / before; below 1 is faster) and its certainty."""

    ratio: float
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    smallest: float
    """Smallest relative change that these data could have shown: half the interval's width. 0.02: 2 %."""
    runs: int
    """Pairs, or runs of the smaller side."""
    level: float = LEVEL
    """Level of the interval, all looks at the data included."""
    covers_runs: bool = True
    """Flag: differences between runs of one program are in the interval; not so with one run a side."""


def median(values: F64) -> F64:
    """The median of each row."""
    found: F64 = np.median(values, axis=-1)
    return found


def mean(values: F64) -> F64:
    """The mean of each row."""
    found: F64 = np.mean(values, axis=-1)
    return found


def quantile(share: float) -> Statistic:
    """The quantile of each row: ``quantile(0.9)``."""

    def of(values: F64) -> F64:
        found: F64 = np.quantile(values, share, axis=-1)
        return found

    return of


MAX_OVER_NOISE = 4.0
"""Variance of a comparison's pairs over that of all, above which its trial is taken to be noisier than the others. Two
degrees of freedom exceed it by chance in about a tenth of comparisons (F distribution)."""


class Noise(Struct, frozen=True, kw_only=True):
    """Variation of the log ratios of pairs of one experiment, about the mean of each comparison."""

    variance: float
    freedom: int
    """Degrees of freedom; 0: nothing is known."""


def noise(comparisons: Iterable[tuple[Sequence[float], Sequence[float]]]) -> Noise:
    """The pooled variation of several comparisons, each (before, after), one time of each side per round.

    Raises:
        ValueError: sides of different length, or a time that is not above 0.
    """
    squares, freedom = 0.0, 0
    for before, after in comparisons:
        logs = [b - a for a, b in zip(_logs(before), _logs(after), strict=True)]
        if len(logs) > 1:
            squares += variance(logs) * (len(logs) - 1)
            freedom += len(logs) - 1
    return Noise(variance=squares / freedom if freedom else 0.0, freedom=freedom)


def paired(
    before: Sequence[float],
    after: Sequence[float],
    *,
    level: float = LEVEL,
    looks: int = 1,
    among: Noise | None = None,
) -> Effect:
    """One time of each side per round. The ratio is the geometric mean of the rounds' ratios.

    ``among``: the noise of all comparisons of the same rounds, this one included. Few pairs say little about their own
    variation: unless they vary much more than all do, the larger of both counts, with the certainty of all.

    Raises:
        ValueError: fewer than three pairs, sides of different length, or a time that is not above 0.
    """
    logs = [b - a for a, b in zip(_logs(before), _logs(after), strict=True)]
    if len(logs) < MIN_PAIRS:
        raise ValueError(f"{len(logs)} pairs; expected {MIN_PAIRS} or more")
    own, freedom = variance(logs), len(logs) - 1
    if among is not None and among.freedom > freedom and own <= MAX_OVER_NOISE * among.variance:
        own, freedom = max(own, among.variance), among.freedom
    return _effect(fmean(logs), math.sqrt(own / len(logs)), freedom, runs=len(logs), level=level, looks=looks)


def unpaired(before: Sequence[float], after: Sequence[float], *, level: float = LEVEL, looks: int = 1) -> Effect:
    """Times of whole runs that were not made in rounds. The ratio is that of the geometric means.

    A single run may be compared with a group: the group's variation then stands for both.

    Raises:
        ValueError: a side without runs, fewer than three runs in all, or a time that is not above 0.
    """
    one, other = _logs(before), _logs(after)
    if not one or not other or len(one) + len(other) < MIN_PAIRS:
        raise ValueError(f"{len(one)} and {len(other)} runs; expected one and two or more")
    error, freedom = _welch(one, other)
    return _effect(fmean(other) - fmean(one), error, freedom, runs=min(len(one), len(other)), level=level, looks=looks)


def assumed(ratio: float, reach: float = 0.0) -> Effect:
    """The ratio of two single runs, of programs whose runs differ by ``RUN_SPREAD``.

    ``reach``: of the logarithm's interval within the runs; 0 where nothing of the ratio is an estimate.
    """
    spread = RUN_SPREAD * math.sqrt(2.0) * student_reach(LEVEL, NORMAL_FROM)
    return replace(_reaching(math.log(ratio), math.hypot(spread, reach), runs=1, level=LEVEL), covers_runs=False)


def runs_needed(ratio: float, *, spread: float = RUN_SPREAD, level: float = LEVEL, looks: int = 1) -> int | None:
    """Runs a side that decide a change of this size, if runs differ by ``spread``; None: more than ``MAX_RUNS``."""
    away = abs(math.log(ratio))
    for runs in range(2, MAX_RUNS + 1):
        reach = spread * math.sqrt(2.0 / runs) * student_reach(1.0 - (1.0 - level) / looks, 2 * (runs - 1))
        if reach < away:
            return runs
    return None


def within(
    before: F64,
    after: F64,
    *,
    blocks: tuple[int, int] | None = None,
    statistic: Statistic = median,
    level: float = LEVEL,
    looks: int = 1,
) -> Effect:
    """One run a side, each by the times of its steps in order; differences between runs are not in the interval.

    Args:
        before: float64[step].
        after: float64[step].
        blocks: blocks of each side, from ``blocks_of`` its steps' durations; by default the values are these, in ns.
        statistic: what is compared, by default the median step.
        level: level of the interval.
        looks: looks at the data, or comparisons, that share the error.

    Raises:
        ValueError: fewer than ``MIN_STEPS`` steps on a side, or the statistic is not above 0 in every resampled run.
    """
    if min(len(before), len(after)) < MIN_STEPS:
        raise ValueError(f"{len(before)} and {len(after)} steps; expected {MIN_STEPS} or more")
    random = np.random.default_rng(0)  # the same answer each time
    counts = blocks or (blocks_of(before), blocks_of(after))
    errors = [_block_error(side, count, statistic, random) for side, count in zip((before, after), counts, strict=True)]
    middle = math.log(float(statistic(after)) / float(statistic(before)))
    error, freedom = _joined(errors, [count - 1 for count in counts])
    return replace(_effect(middle, error, freedom, runs=1, level=level, looks=looks), covers_runs=False)


def shares(before: float, after: float, *, samples: tuple[int, int], level: float = LEVEL, looks: int = 1) -> Effect:
    """Shares of the stack samples of one run a side; differences between runs are not in the interval.

    The number of samples is binomial, but for its dispersion (``derive.stacks.profile_difference``).

    Raises:
        ValueError: fewer than ``MIN_SAMPLES`` samples on a side, for which the logarithm is not nearly normal.
    """
    hits = [share * count / DISPERSION for share, count in zip((before, after), samples, strict=True)]
    if min(hits) * DISPERSION < MIN_SAMPLES:
        raise ValueError(f"fewer than {MIN_SAMPLES} samples on a side")
    error = math.sqrt(sum((1.0 - share) / hit for share, hit in zip((before, after), hits, strict=True)))
    found = _effect(math.log(after / before), error, NORMAL_FROM, runs=1, level=level, looks=looks)
    return replace(found, covers_runs=False)


def on_one_side(before: float, after: float, samples: tuple[int, int]) -> bool:
    """Whether a line that has samples on one side only has them by more than chance.

    Were its share on the other side the same, that side would have none of it with a probability of ``1 - LEVEL`` at
    most.
    """
    share, mine, other = (before, *samples) if before else (after, *reversed(samples))
    return share * mine >= MIN_SAMPLES and share * other / DISPERSION >= -math.log(1.0 - LEVEL)


def blocks_of(durations_ns: F64) -> int:
    """Blocks into which a run is cut: of a second or longer, where that gives enough of them."""
    seconds = int(float(durations_ns.sum()) / BLOCK_NS)
    return max(MIN_BLOCKS, min(seconds, MAX_BLOCKS))


def verdict(effect: Effect, *, over: float = 0.0) -> Verdict:
    """What the interval says about a change of more than ``over`` (0.05: 5 %), to either side.

    slower, faster: the interval excludes 1, and the ratio is beyond the limit. same: the whole interval lies within
    the limit; with ``over`` 0 only if the data do not vary at all. Else undecided.
    """
    limit = 1.0 + over
    if effect.low >= 1.0 / limit and effect.high <= limit:
        return "same"
    if effect.low > 1.0 and effect.ratio > limit:
        return "slower"
    if effect.high < 1.0 and effect.ratio < 1.0 / limit:
        return "faster"
    return "undecided"


def _logs(times: Sequence[float]) -> list[float]:
    if any(not 0.0 < time < math.inf for time in times):
        raise ValueError("a time that is not above 0 has no logarithm")
    return [math.log(time) for time in times]


def _welch(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Standard error of the difference of two means, and its degrees of freedom.

    Two runs a side: the claim is that two programs are one, whose runs vary alike, so both sides
    together say how.
    """
    if min(len(one), len(other)) == 1:
        many = one if len(one) > 1 else other
        return math.sqrt(variance(many) * (1.0 + 1.0 / len(many))), len(many) - 1
    errors = [math.sqrt(variance(side) / len(side)) for side in (one, other)]
    if len(one) == len(other) == FEW_RUNS:
        return math.hypot(*errors), 2 * (len(one) - 1)
    return _joined(errors, [len(one) - 1, len(other) - 1])


def _joined(errors: Sequence[float], freedoms: Sequence[int]) -> tuple[float, float]:
    """Standard error of a difference, and its degrees of freedom by Welch and Satterthwaite."""
    squares = [error * error for error in errors]
    whole = sum(squares)
    if whole == 0.0:
        return 0.0, float(sum(freedoms))
    below = sum(square * square / freedom for square, freedom in zip(squares, freedoms, strict=True))
    return math.sqrt(whole), whole * whole / below


def _block_error(steps: F64, blocks: int, statistic: Statistic, random: np.random.Generator) -> float:
    """Standard error of the logarithm of a run's statistic, from runs made of blocks drawn from it.

    Few blocks vary less than the run, and blocks shorter than the time in which steps go up and down together vary
    less than longer ones: two factors put that right.
    """
    drawn = _cut(steps, blocks)[random.integers(0, blocks, (DRAWS, blocks))].reshape(DRAWS, -1)
    found = statistic(drawn)
    if not (found > 0.0).all() or not float(statistic(steps)) > 0.0:
        raise ValueError("not above 0 in every block; expected something that every part of the run does")
    few = blocks / (blocks - 1)
    return float(np.std(np.log(found), ddof=1)) * math.sqrt(few * _short(steps, len(steps) // blocks))


def _short(steps: F64, length: int) -> float:
    """Factor by which the variance of blocks of this length falls short, by the correlation of neighbouring steps.

    Exact for the mean of an autoregressive process of first order; the correlation is that of ranks (Spearman).
    """
    _, places = np.unique(steps, return_inverse=True)  # ranks: outliers would hide what the others have in common
    ranks = places - float(places.mean())
    whole = float((ranks * ranks).sum())
    phi = min(max(float((ranks[1:] * ranks[:-1]).sum()) / whole, 0.0), _MOST_CORRELATED) if whole else 0.0
    return 1.0 / (1.0 - 2.0 * phi * (1.0 - phi**length) / (length * (1.0 - phi * phi)))


def _cut(steps: F64, blocks: int) -> F64:
    """The run as blocks of equal length, float64[block, step]; a rest shorter than a block is left out."""
    length = len(steps) // blocks
    cut = steps[: blocks * length].reshape(blocks, length)
    if length <= _MOST_OF_A_BLOCK:
        return cut
    shares = (np.arange(_MOST_OF_A_BLOCK) + 0.5) / _MOST_OF_A_BLOCK
    found: F64 = np.quantile(cut, shares, axis=1).T
    return found


def _effect(middle: float, error: float, freedom: float, *, runs: int, level: float, looks: int) -> Effect:
    """The effect with this logarithm and its standard error."""
    return _reaching(middle, error * student_reach(1.0 - (1.0 - level) / looks, freedom), runs=runs, level=level)


def _reaching(middle: float, reach: float, *, runs: int, level: float) -> Effect:
    """The effect with this logarithm and half the width of its interval."""
    return Effect(
        ratio=math.exp(middle),
        low=math.exp(max(middle - reach, -_FAR)),
        high=math.exp(min(middle + reach, _FAR)),
        smallest=math.expm1(min(reach, _FAR)),
        runs=runs,
        level=level,
    )
