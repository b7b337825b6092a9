"""Ratio between runs that were made in pairs, with its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_PAIRS = 3
"""Two pairs give a useless interval: 12.7 standard errors to each side."""
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Quantile 0.975 of Student's t by degrees of freedom from 1; more than 30 count as 30. Source: NIST/SEMATECH
e-Handbook of Statistical Methods, 1.3.6.7.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Ratio of two times (after divided by before); smaller is better."""

    ratio: float
    low: float
    high: float


def change(before: Sequence[float], after: Sequence[float]) -> Change:
    """The geometric mean of ``after[i] / before[i]`` with its 95 % interval.

    What slows a round (the host, a neighbour) slows both runs of a pair and cancels out; the rest is taken as normal in
    the logarithms.

    Raises:
        ValueError: fewer than three pairs, no pairs at all, or a time that is not above 0.
    """
    logs = [math.log(b / a) for a, b in zip(before, after, strict=True)]
    if len(logs) < MIN_PAIRS:
        raise ValueError(f"{len(logs)} pairs; expected {MIN_PAIRS} or more")
    freedom = min(len(logs) - 1, len(_T_975))
    reach = _T_975[freedom - 1] * stdev(logs) / math.sqrt(len(logs))
    middle = fmean(logs)
    return Change(ratio=math.exp(middle), low=math.exp(middle - reach), high=math.exp(middle + reach))
