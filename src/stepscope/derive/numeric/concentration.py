"""Whether an amount lies in a few of many: a mean over all of them then describes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST = 0.8
"""Part of the sum that the few must have."""
MAX_FEW = 0.1
"""Part of all that they may be: what happens every tenth time is usual."""


class Few(Struct, frozen=True, kw_only=True):
    """The largest amounts that have most of the sum."""

    count: int
    of: int
    each: float
    """Their mean."""

    def said(self, what: str) -> str:
        """``in one of 23 steps``, ``in 3 of 220 calls``."""
        return f"in {'one' if self.count == 1 else f'{self.count:,}'} of {self.of:,} {what}"


NEARLY_ALL = 0.9
MAX_SOME = 0.5
"""The same for what recurs: some of all calls that nearly all of the time lies in."""


def recurring(amounts: ArrayLike) -> float | None:
    """From which amount on they have nearly all of the sum, if they are some, such as every tenth; else None.

    The bound is below the least of these: others like it count as well.
    """
    values = np.sort(np.asarray(amounts, float))[::-1]
    if not len(values) or values.sum() <= 0:
        return None
    count = int(np.searchsorted(np.cumsum(values), NEARLY_ALL * values.sum())) + 1
    return float(values[count - 1]) / 2 if count <= MAX_SOME * len(values) else None


def few(amounts: ArrayLike) -> Few | None:
    """None where the sum is spread over more."""
    values = np.sort(np.asarray(amounts, float))[::-1]
    if not len(values) or values.sum() <= 0:
        return None
    count = int(np.searchsorted(np.cumsum(values), MOST * values.sum())) + 1
    if count > MAX_FEW * len(values):
        return None
    return Few(count=count, of=len(values), each=float(values[:count].mean()))
