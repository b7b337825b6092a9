"""Offsets as they are used: the clock of a host at any time, and whether one moment was before another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.derive.clocks.gates import RATE_MAX
from stepscope.derive.clocks.link_offset import WANDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.records import F64, I64

Order = Literal["before", "after", "unknown"]


class HostClock(Struct, frozen=True, kw_only=True):
    """The clock of a host minus that of the reference, at knots by the clock of the reference. [knot], nanoseconds.

    It holds along straight lines between knots of the same ``piece``; pieces meet where a clock jumped. Infinite
    bounds mean that nothing is known.
    """

    host: str
    at_ns: F64
    piece: I64
    offset_ns: F64
    low_ns: F64
    high_ns: F64

    def offset(self, at_ns: F64) -> F64:
        """The best estimate at times of the reference."""
        return self._between(self.offset_ns, at_ns)

    def bounds(self, at_ns: F64) -> tuple[F64, F64]:
        """The smallest and the largest offset that are possible at times of the reference.

        Between knots a clock may leave the straight line by its wander, beyond the last one by its whole drift.
        """
        at, index = self._place(at_ns)
        left, right = self.at_ns[index], self.at_ns[index + 1]
        before, after = np.maximum(at - left, 0.0), np.maximum(right - at, 0.0)
        bend = 2 * WANDER * np.minimum(before, after)
        outside = RATE_MAX * (np.maximum(left - at, 0.0) + np.maximum(at - right, 0.0))
        low = self._between(self.low_ns, at_ns) - bend - outside
        return low, self._between(self.high_ns, at_ns) + bend + outside

    def bound(self, at_ns: F64) -> F64:
        """The largest possible error of ``offset`` at times of the reference."""
        low, high = self.bounds(at_ns)
        offset = self.offset(at_ns)
        result: F64 = np.maximum(high - offset, offset - low)
        return result

    def to_reference(self, stamps_ns: F64) -> tuple[F64, F64]:
        """Stamps of this host as times of the reference, and the bound of each."""
        usual = float(np.median(self.offset_ns)) if len(self.offset_ns) else 0.0
        at = stamps_ns - usual
        for _ in range(2):  # the drift over the error of the first guess is far below a nanosecond after two
            at = stamps_ns - self.offset(at)
        return at, self.bound(at)

    def _place(self, at_ns: F64) -> tuple[F64, I64]:
        """For each time: the time, and the knot before it in its piece."""
        at = np.asarray(at_ns, np.float64)
        starts = np.flatnonzero(np.diff(self.piece, prepend=-1))
        piece = np.maximum(np.searchsorted(self.at_ns[starts], at, side="right") - 1, 0)
        first = starts[piece]
        last = np.append(starts[1:], len(self.at_ns))[piece] - 1
        index = np.clip(np.searchsorted(self.at_ns, at, side="right") - 1, first, np.maximum(last - 1, first))
        return at, index

    def _between(self, values: F64, at_ns: F64) -> F64:
        at, index = self._place(at_ns)
        left, right = self.at_ns[index], self.at_ns[index + 1]
        share = np.clip((at - left) / np.maximum(right - left, 1.0), 0.0, 1.0)
        before, after = values[index], values[index + 1]
        with np.errstate(invalid="ignore"):
            mixed = before + share * (after - before)
        result: F64 = np.where(before == after, before, mixed)
        return result


class ClockModel(Struct, frozen=True, kw_only=True):
    """The clocks of all hosts that are connected with the reference."""

    reference: str
    clocks: Mapping[str, HostClock]
    contradictions: int
    """Collectives whose bounds exclude what the exchanges say: a clock was set, or steps were paired wrongly."""
    conflicts: int
    """Times at which links contradict each other: a clock jumped unseen."""
    bent: int
    """Times at which the drift of a link was no straight line."""


def order(a_ns: float, a_bound_ns: float, b_ns: float, b_bound_ns: float) -> Order:
    """Whether moment A was before moment B, both as times of the reference: unknown within the bounds of both."""
    if abs(b_ns - a_ns) <= a_bound_ns + b_bound_ns:
        return "unknown"
    return "before" if a_ns < b_ns else "after"
