"""Members that make the others wait in most steps, by the same: the persistent stragglers.

Serves DST001, and DST002 that speaks where there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.tables.units import Ratio

if TYPE_CHECKING:
    from stepscope.derive.cluster.blame import Blame

MIN_RATIO = Ratio(0.05)
"""Excess of the median step, as a share of the period."""
SPREADS = 3.0
"""It must be so many times the usual deviation of the member's own time."""
MIN_LAST = Ratio(0.6)
"""Share of the steps in which one of them must be the slowest."""
MAX_GROUP = Ratio(0.34)
"""Share of the members that can be called stragglers; two of three are not."""


def persistent(
    blame: Blame,
    *,
    min_ratio: float = MIN_RATIO,
    spreads: float = SPREADS,
    min_last: float = MIN_LAST,
    max_group: float = MAX_GROUP,
) -> list[int]:
    """The stragglers, the slowest first; empty if there are none, or too many."""
    floor = np.maximum(min_ratio * blame.period_ns, spreads * blame.own_spread_ns)
    group = [int(j) for j in np.argsort(-np.nan_to_num(blame.blame_median_ns)) if blame.blame_median_ns[j] > floor[j]]
    there = int(np.isfinite(blame.own_ns).sum())
    few = len(group) <= max(1, int(max_group * there))
    return group if few and sum(blame.last_ratio[j] for j in group) >= min_last else []
