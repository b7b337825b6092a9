"""Which differences between two stack profiles exceed the noise of sampling.

Two profiles of one program differ, because what a sampler hits is chance. If nothing has changed, the samples of a
function are divided between the two profiles in the proportion of the work that each covers: the number in one of them
is binomial. Three things are added to the textbook, each measured (docs/benchmarks/stacks.md):

- samples are not independent: a thread stays where it is for several ticks, memory is laid out differently in each run.
  Counts of one program vary up to ``DISPERSION`` times as much as independent ones; they are divided by it before a
  test.
- the host's speed differs from run to run, for all functions alike. Where time is sampled, functions are compared with
  the speed of most of the profile (weighted median of their ratios), as far as a host may explain it.
- many functions are tested at once. P-values are adjusted (Holm), so that at most one in twenty comparisons of equal
  programs shows any difference; functions with too few samples to show anything are not tested (Tarone).

Source: Holm, A simple sequentially rejective multiple test procedure, 1979; Tarone, A modified Bonferroni method for
discrete data, 1990; Anders & Huber, Differential expression analysis for sequence count data, 2010 (ratio of medians);
Kish, Survey Sampling, 1965 (effective number of weighted samples).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.derive.stacks.call_tree import function_keys, function_totals, stack_totals
from stepscope.tables.stacks import UNKNOWN

if TYPE_CHECKING:
    from stepscope.derive.stacks.merge_profiles import Pair
    from stepscope.tables.records import F64, I64, Bool
    from stepscope.tables.stacks import Frame, StackProfile

DISPERSION = 2.0
"""Variance of a function's count between runs of one program, relative to independent samples."""
HOST_SPREAD = 0.1
"""Standard deviation of the CPU time of one program between runs on a busy host, as a share of it."""
LEAST_SHARE = 0.005
"""Changes below this share of the larger profile are ignored, significant or not."""
ALPHA = 0.05
"""Share of comparisons of equal programs that may show any difference."""
_Z95 = 1.96
_FACTOR_LIMIT = 1 + 3 * HOST_SPREAD
"""A larger difference in speed is not put down to the host."""
_EXACT = 1000
"""Up to this many samples the binomial is summed; beyond it the normal distribution is as good."""
_FEW = 20
"""This many samples on one side and none on the other are not chance."""
_FEW_ROWS = 5
"""With this many rows a common divisor of weights is hardly chance: one set of five numbers in 27 has one."""
_SURE = 1e-9
"""Distance at which probabilities are kept from 0 and 1."""
_MANY = 1e7
"""If the weights' common divisor alone implies more samples than this, the weights are times or bytes, not counts."""
_FASTEST_NS = 50e3
"""No sampler takes a stack more often: a smaller divisor of times is a clock's resolution."""
_STAY_NS = 50e6
"""Samples within one stay of a thread at one place say the same. So a span of time, in files that have spans in place
of samples, counts as one, and a longer one as one for each such time. Source: of two profiles by pyinstrument 5 of one
program, 58 of 121 functions differed where each millisecond counted, 2 with this (of a call that one of them put into
its caller)."""
_SMALL = 0.05
"""Quantile of the weights that is taken for one sample's, where a divisor cannot be."""
_OFTEN = 20.0
"""Weights without a unit that nearly all are so many times their divisor are times, not counts."""
_COUNTED_UNITS = frozenset({"bytes", "page-faults", "minor-faults", "major-faults", "faults"})

Basis = Literal["work", "share"]
"""work: both cover known amounts of work, equal unless given. share: only proportions are compared."""


class Change(Struct, frozen=True, kw_only=True):
    """A weight before and after, and the significance of the difference."""

    before: float
    after: float
    """Measured weight, in the profile's unit."""
    expected: float
    """Expected weight if nothing had changed: the earlier weight, scaled by work and host speed."""
    p_value: float
    """Probability of such a difference by chance, adjusted for all tests of the comparison. 1: too few samples."""

    @property
    def delta(self) -> float:
        """After - expected."""
        return self.after - self.expected

    @property
    def significant(self) -> bool:
        """Whether the difference exceeds the noise of sampling."""
        return self.p_value < ALPHA


class FunctionChange(Struct, frozen=True, kw_only=True):
    """The change of a function: in its own code, and with everything that it calls."""

    function: Frame
    own: Change
    total: Change


class Difference(Struct, frozen=True, kw_only=True):
    """Differences between two profiles."""

    basis: Basis
    timed: bool
    """Whether time was sampled, so that the host's speed matters."""
    factor: float
    """Work and speed of the later profile relative to the earlier: the factor for an unchanged function's weight."""
    speed: float
    """The part of ``factor`` that is put down to the host."""
    bases: tuple[float, float]
    """What weights of the two are divided by before they are shown: steps or units of work; for shares the totals."""
    least_gone: float
    """Smallest share of the earlier profile at which a function shows that it has gone; above 1: none can."""
    samples: tuple[float, float]
    """Number of samples behind the two profiles, where known."""
    whole: Change
    """Change of the total. The host's speed is counted as noise here, not divided out."""
    functions: tuple[FunctionChange, ...]
    """Functions that changed significantly and by a share that matters; the largest change of self weight first."""
    tested: int
    """Number of functions with enough samples to show a difference."""
    before: F64
    after: F64
    p_values: F64
    """Adjusted p-value of the difference in total of each stack of the pair's tree. float64[stack]."""

    @property
    def significant(self) -> bool:
        """Whether anything differs beyond noise."""
        return bool(self.functions) or (self.basis == "work" and self.whole.significant)

    @property
    def host_at_limit(self) -> bool:
        """Whether most functions differ by as much as a host may explain, or by more."""
        return self.speed in {_FACTOR_LIMIT, 1 / _FACTOR_LIMIT}


def difference(pair: Pair, *, basis: Basis = "work", work: tuple[float, float] = (1.0, 1.0)) -> Difference:
    """Test two profiles that stand on one tree.

    ``work``: how much each covers (steps, requests), for the basis "work".
    """
    before, after = pair.before, pair.after
    keys, shown = function_keys(before.frames)
    own, total = (
        np.stack(column) for column in zip(*(_of_functions(one, keys) for one in (before, after)), strict=True)
    )
    timed = before.unit not in _COUNTED_UNITS
    amount = _ratio(work[1], work[0]) if basis == "work" else _ratio(after.total, before.total)
    speed = _speed(own, amount) if timed and basis == "work" else 1.0
    factor = amount * speed
    sample_weights = _sample_weights(before, after)
    of_functions = _tested(np.concatenate([own, total], axis=1), sample_weights, factor)
    own_p, total_p = np.split(of_functions.p_values, 2)
    least = LEAST_SHARE * max(before.total * factor, after.total)
    changes = [
        FunctionChange(
            function=frame,
            own=Change(before=own[0, i], after=own[1, i], expected=own[0, i] * factor, p_value=own_p[i]),
            total=Change(before=total[0, i], after=total[1, i], expected=total[0, i] * factor, p_value=total_p[i]),
        )
        for i, frame in enumerate(shown)
    ]
    changes = [c for c in changes if any(x.significant and abs(x.delta) >= least for x in (c.own, c.total))]
    changes.sort(key=lambda c: (-abs(c.own.delta), -abs(c.total.delta)))
    of_stacks = np.stack([stack_totals(one, one.samples.weight).total for one in (before, after)])
    return Difference(
        basis=basis,
        timed=timed,
        factor=factor,
        speed=speed,
        bases=work if basis == "work" else (before.total or 1.0, after.total or 1.0),
        least_gone=_ratio(of_functions.least_gone, before.total / sample_weights[0] / DISPERSION) or 2.0,
        samples=(_ratio(before.total, sample_weights[0]), _ratio(after.total, sample_weights[1])),
        whole=_whole(before.total, after.total, amount, sample_weights, timed=timed),
        functions=tuple(changes),
        tested=int(np.any(np.split(of_functions.possible, 2), axis=0).sum()),
        before=of_stacks[0],
        after=of_stacks[1],
        p_values=_tested(of_stacks, sample_weights, factor).p_values,
    )


def sample_weight(profile: StackProfile, divisor: float | None = None) -> float:
    """The weight of one sample, larger ones counting more (Kish); 1 if there are no samples.

    If the source does not say how many samples a row sums up, weights are taken as multiples of ``divisor``, by default
    their greatest common divisor, unless that is the resolution of a clock (``_counts``); if it gives too many samples,
    each row counts as one.
    """
    weight = profile.samples.weight
    counts = profile.samples.count.astype(np.float64)
    unknown = counts == 0
    if unknown.any():
        divisor = common_divisor(weight[unknown]) if divisor is None else divisor
        counts[unknown] = _counts(weight[unknown], divisor, profile)
    some = counts > 0
    return _ratio(float((weight[some] ** 2 / counts[some]).sum()), profile.total) or 1.0


def samples_known(profile: StackProfile) -> bool:
    """Whether the number of samples is known, or follows from the weights."""
    weight = profile.samples.weight[profile.samples.count == 0]
    return not len(weight) or _period(weight, common_divisor(weight), profile) == common_divisor(weight)


def _counts(weights: F64, divisor: float, profile: StackProfile) -> F64:
    """How many samples rows of these weights sum up, where the source does not say."""
    period = _period(weights, divisor, profile)
    if period:
        return weights / period
    return np.maximum(weights / _STAY_NS, 1.0) if profile.unit == "ns" else np.ones(len(weights))


def _period(weights: F64, divisor: float, profile: StackProfile) -> float:
    """What one sample weighs, near ``divisor``; 0 if the weights do not show it: spans of time, or sizes."""
    spans = profile.unit == "ns" and bool((profile.samples.at_ns != UNKNOWN).any())
    if spans or divisor <= 0 or profile.unit == "bytes" or (profile.unit == "ns" and divisor < _FASTEST_NS):
        return 0.0
    small = float(np.quantile(weights, _SMALL))
    if profile.unit == "" and len(weights) >= _FEW_ROWS and small > _OFTEN * divisor:
        divisor = small
    return divisor if weights.sum() / divisor <= _MANY else 0.0


def common_divisor(weights: F64) -> float:
    """The greatest common divisor of the weights; 0 if some are not whole numbers, or all are 0."""
    whole = bool(np.all(weights == np.floor(weights)))
    return float(np.gcd.reduce(weights.astype(np.int64))) if whole and len(weights) else 0.0


def _sample_weights(before: StackProfile, after: StackProfile) -> tuple[float, float]:
    """Weight of one sample in each profile, from the common divisor of both: few rows can have one by chance."""
    rows = [one.samples.weight[one.samples.weight > 0] for one in (before, after)]
    together = common_divisor(np.concatenate(rows))
    first, second = (
        sample_weight(one, together if len(of_one) < _FEW_ROWS else None)
        for one, of_one in zip((before, after), rows, strict=True)
    )
    return first, second


def _of_functions(profile: StackProfile, keys: I64) -> tuple[F64, F64]:
    totals = function_totals(profile, profile.samples.weight, keys)
    return totals.self_weight, totals.total


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _speed(own: F64, amount: float) -> float:
    """How much slower the host was in the second run: the ratio that most of the profile shows."""
    both = np.all(own > 0, axis=0)
    if not both.any() or not amount:
        return 1.0
    ratios = own[1, both] / own[0, both] / amount
    weights = np.minimum(own[0, both] * amount, own[1, both])
    order = np.argsort(ratios)
    middle = int(np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2))
    return float(np.clip(ratios[order][middle], 1 / _FACTOR_LIMIT, _FACTOR_LIMIT))


def _whole(before: float, after: float, amount: float, sample_weights: tuple[float, float], *, timed: bool) -> Change:
    """Change of the totals; the host's speed counts as noise."""
    counts = _ratio(before, sample_weights[0]), _ratio(after, sample_weights[1])
    p_value = 1.0
    if min(counts) > 0 and amount:
        spread = sum(DISPERSION / count for count in counts) + (2 * HOST_SPREAD**2 if timed else 0.0)
        p_value = math.erfc(abs(math.log(after / before / amount)) / math.sqrt(2 * spread))
    elif max(counts) >= _FEW:
        p_value = 0.0
    return Change(before=before, after=after, expected=before * amount, p_value=p_value)


class _Tested(Struct, frozen=True, kw_only=True):
    """The adjusted p-value of each item, and whether it could have been significant at all."""

    p_values: F64
    possible: Bool
    least_gone: float
    """Samples in the earlier profile, after division by ``DISPERSION``, that are no chance if the later has none."""


def _tested(weights: F64, sample_weights: tuple[float, float], factor: float) -> _Tested:
    """Binomial tests of many items. ``weights``: float64[2, item], before and after."""
    if factor <= 0:  # if one side is empty there are no proportions
        return _Tested(
            p_values=np.ones(weights.shape[1]), possible=np.zeros(weights.shape[1], np.bool_), least_gone=np.inf
        )
    before, after = (weights[i] / sample_weights[i] / DISPERSION for i in (0, 1))
    in_before, in_after = 1 / sample_weights[0], factor / sample_weights[1]
    chance = min(max(in_before / (in_before + in_after), _SURE), 1 - _SURE)
    total = np.rint(before + after)
    least = 2 * min(chance, 1 - chance) ** total
    possible = least < ALPHA / _tarone(least)
    spread = np.sqrt(np.maximum(total * chance * (1 - chance), np.finfo(float).tiny))
    distance = np.maximum(np.abs(before - total * chance) - 0.5, 0.0) / spread
    p_values = np.ones(len(total))
    for i in np.flatnonzero(possible).tolist():
        p_value = math.erfc(distance[i] / math.sqrt(2))
        if total[i] <= _EXACT and p_value < ALPHA:
            p_value = _binomial(round(before[i]), int(total[i]), chance)
        p_values[i] = p_value
    tests = max(int(possible.sum()), 1)
    return _Tested(
        p_values=_holm(p_values, possible), possible=possible, least_gone=math.log(ALPHA / 2 / tests) / math.log(chance)
    )


def _tarone(least: F64) -> int:
    """The smallest k such that at most k tests can reach ``ALPHA / k``."""
    order = np.sort(least)
    k = 1
    while k < len(order) and order[k] < ALPHA / k:
        k += 1
    return k


def _binomial(successes: int, trials: int, chance: float) -> float:
    """Two-sided p-value: twice the smaller tail."""
    successes = min(max(successes, 0), trials)
    terms = np.arange(trials + 1)
    logs = _log_factorial(trials)[trials] - _log_factorial(trials) - _log_factorial(trials)[::-1]
    masses = np.exp(logs + terms * math.log(chance) + (trials - terms) * math.log1p(-chance))
    return float(min(1.0, 2 * min(masses[: successes + 1].sum(), masses[successes:].sum())))


def _log_factorial(largest: int) -> F64:
    """log(n!) for n from 0 to ``largest``."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def _holm(p_values: F64, possible: Bool) -> F64:
    """P-values adjusted for all possible tests; 1 elsewhere."""
    adjusted = np.ones(len(p_values))
    tested = np.flatnonzero(possible)
    order = tested[np.argsort(p_values[tested], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted
