"""Pairs the calls of two members where both were recorded without a gap, by what an exchange makes impossible.

No member leaves an exchange before all have entered it. So within a stretch of calls that both recorded, the same steps
are those at the one shift at which the last entry of each comes before the first end, however late a busy machine lets
a member leave. Members that do not wait for each other break that as soon as they have drifted apart by a call, which
takes few steps where durations vary; where they do not vary, nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.records import F64, I64

MIN_CALLS = 8
"""Fewest calls of a stretch that is looked at."""
FAR = 4
"""Shifts that are tried around the first calls of both, which were begun near to each other."""
DRIFTS_APART = 4.0
"""Variance by which calls that do not wait for each other would have drifted apart, in squared calls, from which their
order is evidence: a random walk that began in the middle stays within one call by a chance of 4/pi exp(-pi^2/8 * 4),
1 % (first exit of Brownian motion from an interval). Of the members of bench/modes.py that wait for each other,
all steps are in order, of those that do not at most 15 %."""


class SharedClockCalls(Struct, frozen=True, kw_only=True):
    """The calls of a member, on a clock that both share. Shapes: [call], ns."""

    entries: F64
    exits: F64

    def stretches(self, period_ns: float) -> list[I64]:
        """Rows of calls between which no call is missing: it would have taken a period."""
        between = self.entries[1:] - self.exits[:-1]
        usual = float(np.median(between)) if len(between) else 0.0
        cuts = np.flatnonzero(between > usual + period_ns) + 1
        return np.split(np.arange(len(self.exits)), cuts)


class PairedCalls(Struct, frozen=True, kw_only=True):
    """Calls of the same steps."""

    mine: I64
    theirs: I64
    causal: float
    """Share of them in which the last entry comes before the first end."""
    drifted: float
    """Variance by which members that do not wait would have drifted apart, in squared calls."""

    @property
    def evident(self) -> bool:
        """Whether the order of the calls could have been broken."""
        return self.drifted >= DRIFTS_APART


def pair(one: SharedClockCalls, two: SharedClockCalls, period_ns: float, bound_ns: float) -> PairedCalls:
    """The same steps of both in all stretches.

    Args:
        one: calls of a member.
        two: calls of another.
        period_ns: from exit to exit.
        bound_ns: by how much their clocks may be apart.
    """
    found = [_of(one, two, mine, theirs, bound_ns) for mine, theirs in _common(one, two, period_ns)]
    pairs = [each for each in found if each is not None]
    count = sum(len(each.mine) for each in pairs)
    none = np.empty(0, np.int64)
    return PairedCalls(
        mine=np.concatenate([none, *(each.mine for each in pairs)]),
        theirs=np.concatenate([none, *(each.theirs for each in pairs)]),
        causal=sum(each.causal * len(each.mine) for each in pairs) / count if count else 0.0,
        drifted=sum(each.drifted for each in pairs),
    )


def _common(one: SharedClockCalls, two: SharedClockCalls, period_ns: float) -> Iterator[tuple[I64, I64]]:
    """Rows of the calls that both recorded at the same time."""
    others = two.stretches(period_ns)
    for mine in one.stretches(period_ns):
        for theirs in others:
            begin = max(one.entries[mine[0]], two.entries[theirs[0]]) - period_ns
            end = min(one.exits[mine[-1]], two.exits[theirs[-1]]) + period_ns
            here = mine[(one.entries[mine] >= begin) & (one.exits[mine] <= end)]
            there = theirs[(two.entries[theirs] >= begin) & (two.exits[theirs] <= end)]
            if min(len(here), len(there)) >= MIN_CALLS:
                yield here, there


def _of(one: SharedClockCalls, two: SharedClockCalls, mine: I64, theirs: I64, bound_ns: float) -> PairedCalls | None:
    """The pairs of a stretch, at the shift at which most of them are in order; None: the stretch is too short."""
    best: PairedCalls | None = None
    for shift in range(-FAR, FAR + 1):
        here, there = mine[max(0, -shift) :], theirs[max(0, shift) :]
        count = min(len(here), len(there))
        if count < MIN_CALLS:
            continue
        here, there = here[:count], there[:count]
        all_in = np.maximum(one.entries[here], two.entries[there])
        causal = float((all_in <= np.minimum(one.exits[here], two.exits[there]) + bound_ns).mean())
        if best is None or causal > best.causal:
            calls = (one.exits[here] - one.entries[here], two.exits[there] - two.entries[there])
            call = max(1.0, float(np.median(np.maximum(*calls))))
            moved = np.diff(two.exits[there] - one.exits[here])
            best = PairedCalls(mine=here, theirs=there, causal=causal, drifted=float((moved**2).sum()) / call**2)
    return best
