"""How far a member's clock is off the reference clock, with a bound that holds: what aligning times needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.tables.records import F64, I64


class ClockOffset(Struct, frozen=True, kw_only=True):
    """Offset of the reference clock from a member's monotonic clock: reference = own + offset, within the bound.

    Linear between the points. Shapes: [point], at least one.
    """

    times_ns: I64
    """On the member's own clock, rising."""
    offset_ns: F64
    bound_ns: F64

    def at(self, times_ns: I64) -> tuple[F64, F64]:
        """Offset and bound at times of the member's own clock."""
        return np.interp(times_ns, self.times_ns, self.offset_ns), np.interp(times_ns, self.times_ns, self.bound_ns)

    def aligned(self, times_ns: I64) -> F64:
        """Times of the member's own clock on the reference clock."""
        result: F64 = times_ns + self.at(times_ns)[0]
        return result

    @property
    def widest_ns(self) -> float:
        """Widest bound."""
        return float(self.bound_ns.max())


def same() -> ClockOffset:
    """A member that reads the reference clock itself."""
    return ClockOffset(times_ns=np.zeros(1, np.int64), offset_ns=np.zeros(1), bound_ns=np.zeros(1))
