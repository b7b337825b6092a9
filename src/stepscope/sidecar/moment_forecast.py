"""Predicts, in steps, when a condition of ``stepscope trace --when`` will hold again: saves and ends of epochs come
every so many steps, and so may steps that are slow for an unknown reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.tables.records import I64

FEWEST = 2
"""Moments without which nothing is known of their distance."""
LOOKED_AT = 5
"""Newest distances that must agree."""
LOOSE_RATIO = 0.1
"""Distances may differ by this share of their median, and by one step at least."""


class Forecast(Struct, frozen=True, kw_only=True):
    """Moments at a regular distance."""

    every: int
    """Steps from one to the next."""
    loose: int
    """Steps by which the distances differ."""
    last_ns: int
    """Newest moment, since session start."""
    step_ns: int
    """Mean time of a step, those with a moment included."""
    usual_ns: int
    """Median time of a step."""

    @property
    def period_ns(self) -> int:
        """Expected time from one moment to the next."""
        return self.every * self.step_ns

    def next_ns(self, now_ns: int) -> int:
        """When the next moment is expected."""
        periods = 1 + max(0, now_ns - self.last_ns) // max(1, self.period_ns)
        return self.last_ns + periods * self.period_ns


def build(ends_ns: I64, moments_ns: I64) -> Forecast | None:
    """The forecast; None where the moments seen so far have no regular distance.

    Args:
        ends_ns: ends of the steps seen, in order.
        moments_ns: starts of the moments seen.
    """
    if len(ends_ns) < FEWEST:
        return None
    seen = moments_ns[moments_ns >= ends_ns[0]]
    at, first = np.unique(np.searchsorted(ends_ns, seen, side="right"), return_index=True)
    distances = np.diff(at)[-LOOKED_AT:]
    if len(at) < FEWEST or not len(distances):
        return None
    every = int(np.median(distances))
    loose = int(distances.max() - distances.min())
    if every < 1 or loose > max(1, round(LOOSE_RATIO * every)):
        return None
    return Forecast(
        every=every,
        loose=loose,
        last_ns=int(seen[first[-1]]),
        step_ns=int((ends_ns[-1] - ends_ns[0]) / (len(ends_ns) - 1)),
        usual_ns=int(np.median(np.diff(ends_ns))),
    )
