"""Student's t: how far an estimate of few values may lie from what it estimates."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

NORMAL_FROM = 1e6
"""Degrees of freedom from which Student's t is the normal distribution to six digits."""
_LAST_BITS = 1e-15
"""Relative precision at which a continued fraction ends."""


@lru_cache(maxsize=4096)
def student_reach(level: float, freedom: float) -> float:
    """The t that encloses ``level`` of Student's distribution between -t and t; ``freedom`` may be a fraction.

    By bisection of the exact tail (the incomplete beta function): ten digits.
    """
    tail = 1.0 - level
    if freedom >= NORMAL_FROM:
        return -NormalDist().inv_cdf(tail / 2.0)
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        low, high = high, 2.0 * high
    while high - low > 1e-11 * high:
        middle = (low + high) / 2.0
        if student_tail(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return high


def student_tail(t: float, freedom: float) -> float:
    """Probability that Student's t lies beyond -t or t."""
    return _incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function. Source: Abramowitz & Stegun 26.5.8 and 26.5.2 (symmetry)."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function. Source: Lentz's method, Thompson & Barnett, 1986."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0), tiny)
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _not_zero(1.0 + term * d, tiny)
            c = _not_zero(1.0 + term / c, tiny)
            value *= c * d
        if abs(c * d - 1.0) < _LAST_BITS:
            break
    return value


def _not_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
