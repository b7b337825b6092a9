"""The mean of the middle of some numbers, and its standard error: some pairs of blocks are far off on a busy machine.

Source: Yuen, The two-sample trimmed t for unequal population variances, Biometrika 61, 1974 (winsorized variance).
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CUT = 0.2
"""Share of the numbers that is cut off at each end."""


def middle_of(values: Sequence[float]) -> tuple[float, float, int]:
    """(mean of the middle, its standard error, its degrees of freedom). Three numbers at least; of four none is cut."""
    ranked = sorted(values)
    cut = int(CUT * len(ranked))
    kept = ranked[cut : len(ranked) - cut]
    middle = sum(kept) / len(kept)
    filled = [kept[0]] * cut + kept + [kept[-1]] * cut
    mean = sum(filled) / len(filled)
    spread = math.sqrt(sum((one - mean) ** 2 for one in filled) / (len(filled) - 1))
    return middle, spread / ((1 - 2 * cut / len(ranked)) * math.sqrt(len(ranked))), len(kept) - 1
