"""Which step of each member is the same step of the job: the one that all of them leave together.

Steps are never paired by their number: a member may start late, restart, or lose records. Where clocks are aligned, the
ends that lie nearest say how members are shifted; where they are not, the rhythm of the steps does, since what delays
one delays all. If calls so paired do not stay together, each is paired with the one that ends nearest; if those do not
lie near either, the order of entries and ends decides, which an exchange forces (``stretches``). Members of which none
of this holds are not synchronous: no other waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.cluster import stretches
from stepscope.derive.cluster.member_calls import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.cluster.clock import ClockOffset
    from stepscope.derive.cluster.member_calls import MemberCalls
    from stepscope.tables.records import F64, I64

Basis = Literal["clock", "rhythm", "count", "none"]
"""What steps were paired by. clock: aligned clocks. rhythm: the pattern of their durations. count: equal numbers of
them, and nothing that contradicts it."""

MAX_SPREAD = 0.15
"""Spread (median deviation) of the differences between ends, in periods, up to which members end together. Ends that
have nothing to do with each other have 0.25."""
MAX_SHIFTED_SPREAD = 0.30
"""The same where calls are paired one after the other: ends of members that do not wait drift apart without bound."""
MIN_CAUSAL = 0.98
"""Share of the steps in which the last entry must come before the first end, where clocks are known: no member leaves
an exchange before all have entered."""
MIN_MATCHED = 0.5
"""Share of the shorter member's steps that must have a partner, of those that the other may have recorded."""
MIN_NEAREST, MAX_SPREAD_OF_FEW = 0.9, 0.12
"""Where calls are paired with the nearest: share that must have a partner, else the spread is to be smaller.

Of ends that have nothing to do with each other two thirds have one, of workers that only share a server more. Measured
(share, spread): 0.54, 0.175 and 0.74, 0.131 of these; of workers that wait for each other 1.0 and up to 0.055, on a
busy machine 0.73, 0.062 and 0.73, 0.101 (bench/modes.py).
"""
BESIDE = 4.0
"""Periods before and after a call in which the other's records must have an end, if they are there at all: wrappers
that are too dear for short steps rest most of the time, in each member at other times."""
MIN_CORRELATION = 0.5
AHEAD = 0.1
"""By how much the best shift must correlate better than any other."""
MIN_OVERLAP = 20
MAX_CLIP = 5.0
"""Durations above so many medians count as so many, so that one long step does not decide the shift."""


class Pairing(Struct, frozen=True, kw_only=True):
    """The same steps of all members. ``rows`` int64[step, member]: the step's number in the member, -1: none."""

    rows: I64
    reference: int
    basis: tuple[Basis, ...]
    spread: tuple[float, ...]
    """Spread of each member's ends around the reference's, in periods; inf without pairs."""
    synchronous: tuple[bool, ...]
    """Which members leave their calls together with the reference."""


def pair(members: Sequence[MemberCalls], clocks: Sequence[ClockOffset | None]) -> Pairing:
    """Pair the steps of all members with those of the member that has the most usable ones.

    Args:
        members: the calls of each.
        clocks: of each member against one reference clock; None: unknown.
    """
    reference = int(np.argmax([calls.usable.sum() for calls in members]))
    first = members[reference]
    rows = np.full((len(first.exits), len(members)), -1, np.int64)
    rows[:, reference] = np.where(first.exits != NONE, np.arange(len(first.exits)), -1)
    basis: list[Basis] = ["none"] * len(members)
    spread = [np.inf] * len(members)
    synchronous = [False] * len(members)
    basis[reference], spread[reference], synchronous[reference] = "clock", 0.0, True
    here = clocks[reference]
    for j, (other, clock) in enumerate(zip(members, clocks, strict=True)):
        if j == reference:
            continue
        basis[j], found = _pair(_Ends.of(first), _Ends.of(other), here, clock)
        if found is None:
            continue
        rows[found.mine, j] = found.theirs
        spread[j], synchronous[j] = found.spread, found.together
    return Pairing(
        rows=rows, reference=reference, basis=tuple(basis), spread=tuple(spread), synchronous=tuple(synchronous)
    )


class _Ends(Struct, frozen=True, kw_only=True):
    """The calls of a member that are there. Shapes: [call]."""

    numbers: I64
    """Number of the step."""
    entries: I64
    exits: I64
    period_ns: float

    @classmethod
    def of(cls, calls: MemberCalls) -> _Ends:
        there = np.flatnonzero(calls.exits != NONE)
        return cls(
            numbers=there,
            entries=calls.entries[there],
            exits=calls.exits[there],
            period_ns=max(calls.period_ns, 1.0),
        )


class _Pairs(Struct, frozen=True, kw_only=True):
    """Numbers of paired steps."""

    mine: I64
    theirs: I64
    spread: float
    together: bool


def _pair(one: _Ends, two: _Ends, here: ClockOffset | None, there: ClockOffset | None) -> tuple[Basis, _Pairs | None]:
    """Pair the calls of two members."""
    if min(len(one.exits), len(two.exits)) < MIN_OVERLAP:
        return "none", None
    known = here is not None and there is not None and here.widest_ns + there.widest_ns < one.period_ns / 2
    if known and here is not None and there is not None:
        basis: Basis = "clock"
        ends, its = here.aligned(one.exits), there.aligned(two.exits)
        shift = _usual_shift(ends, its)
        entries, bound = (here.aligned(one.entries), there.aligned(two.entries)), here.widest_ns + there.widest_ns
    else:
        basis, ends, its, shift = _by_rhythm(one.exits, two.exits)
        entries, bound = None, 0.0
    if basis == "none":
        return basis, None

    def checked(pairs: _Pairs) -> _Pairs:
        if not pairs.together or entries is None:
            return pairs
        mine, theirs = np.searchsorted(one.numbers, pairs.mine), np.searchsorted(two.numbers, pairs.theirs)
        all_in = np.maximum(entries[0][mine], entries[1][theirs])
        causal = all_in <= np.minimum(ends[mine], its[theirs]) + bound
        return replace(pairs, together=bool(causal.mean() >= MIN_CAUSAL))

    found = checked(_at_shift(one, two, ends, its, shift))
    if not found.together:
        found = checked(_by_nearest(one, two, ends, its))
    if not found.together and entries is not None:
        found = _by_order(one, two, (entries[0], ends), (entries[1], its), bound) or found
    return basis, found


def _at_shift(one: _Ends, two: _Ends, ends: F64, its: F64, shift: int) -> _Pairs:
    """Pairs of calls whose places differ by the shift: nothing is missing, and no clock is off by much."""
    first = max(0, -shift)
    count = max(0, min(len(ends) - first, len(its) - first - shift))
    mine = np.arange(first, first + count)
    apart = its[mine + shift] - ends[mine]
    spread = float(np.median(np.abs(apart - np.median(apart)))) / one.period_ns if count else np.inf
    enough = count >= MIN_MATCHED * min(len(ends), len(its))
    together = enough and spread <= MAX_SHIFTED_SPREAD
    return _Pairs(mine=one.numbers[mine], theirs=two.numbers[mine + shift], spread=spread, together=together)


def _by_nearest(one: _Ends, two: _Ends, ends: F64, its: F64) -> _Pairs:
    """Pairs of calls that end nearest to each other: some are missing, or members do not wait for each other."""
    mine, theirs, apart = _nearest(ends, its, one.period_ns)
    spread = float(np.median(np.abs(apart - np.median(apart)))) / one.period_ns if len(apart) else np.inf
    there = min(_recorded(ends, its, one.period_ns), _recorded(its, ends, one.period_ns))
    enough = len(mine) >= max(MIN_OVERLAP, MIN_MATCHED * there)
    most = MAX_SPREAD if len(mine) >= MIN_NEAREST * there else MAX_SPREAD_OF_FEW
    return _Pairs(mine=one.numbers[mine], theirs=two.numbers[theirs], spread=spread, together=enough and spread <= most)


def _by_order(one: _Ends, two: _Ends, mine: tuple[F64, F64], theirs: tuple[F64, F64], bound: float) -> _Pairs | None:
    """Pairs of calls of which none ends before both have begun, where ends lie far apart: a busy machine delays them.

    None: it is broken, or nothing could have broken it. ``mine``, ``theirs``: entries and exits on one clock.
    """
    here, there = (stretches.SharedClockCalls(entries=entries, exits=exits) for entries, exits in (mine, theirs))
    found = stretches.pair(here, there, one.period_ns, bound)
    if found.causal < MIN_CAUSAL or not found.evident:
        return None
    apart = theirs[1][found.theirs] - mine[1][found.mine]
    spread = float(np.median(np.abs(apart - np.median(apart)))) / one.period_ns
    return _Pairs(mine=one.numbers[found.mine], theirs=two.numbers[found.theirs], spread=spread, together=True)


def _recorded(ends: F64, its: F64, period: float) -> int:
    """How many of ``ends`` lie where the other recorded as well."""
    after = np.searchsorted(its, ends)
    before = np.where(after > 0, ends - its[np.maximum(after - 1, 0)], np.inf)
    behind = np.where(after < len(its), its[np.minimum(after, len(its) - 1)] - ends, np.inf)
    return int((np.maximum(before, behind) <= BESIDE * period).sum())


def _usual_shift(here: F64, there: F64) -> int:
    """By how many places the nearest ends of the other are mostly later."""
    shifts, counts = np.unique(_nearest_of(here, there) - np.arange(len(here)), return_counts=True)
    return int(shifts[np.argmax(counts)])


def _nearest(here: F64, there: F64, period: float) -> tuple[I64, I64, F64]:
    """Pairs of ends each of which is the other's nearest, at most half a period apart beyond their usual distance."""
    near = _nearest_of(here, there)
    back = _nearest_of(there, here)
    mine = np.flatnonzero(back[near] == np.arange(len(here)))
    apart = there[near[mine]] - here[mine]
    good = np.abs(apart - np.median(apart)) <= period / 2 if len(apart) else np.zeros(0, bool)
    return mine[good], near[mine][good], apart[good]


def _nearest_of(here: F64, there: F64) -> I64:
    """For each of ``here`` the position of the nearest of ``there``; both sorted."""
    after = np.clip(np.searchsorted(there, here), 1, max(1, len(there) - 1))
    after = np.minimum(after, len(there) - 1)
    before = np.maximum(after - 1, 0)
    closer: I64 = np.where(here - there[before] <= there[after] - here, before, after)
    return closer


def _by_rhythm(ends: I64, its: I64) -> tuple[Basis, F64, F64, int]:
    """The other's ends on the clock of ``ends``, by the shift at which their durations agree best, and that shift."""
    found = _shift(np.diff(ends).astype(np.float64), np.diff(its).astype(np.float64))
    if found is None and len(ends) != len(its):
        return "none", ends.astype(np.float64), its.astype(np.float64), 0
    shift = found or 0
    first = max(0, -shift)
    count = min(len(ends) - first, len(its) - first - shift)
    mine, theirs = ends[first : first + count], its[first + shift : first + shift + count]
    # A clock may drift: the offset is a line through the two halves' medians.
    gap = (mine - theirs).astype(np.float64)
    half = count // 2
    at = (float(np.median(theirs[:half])), float(np.median(theirs[half:])))
    offset = (float(np.median(gap[:half])), float(np.median(gap[half:])))
    slope = (offset[1] - offset[0]) / max(at[1] - at[0], 1.0)
    moved = its + offset[0] + slope * (its - at[0])
    return ("count" if found is None else "rhythm"), ends.astype(np.float64), moved, shift


def _shift(mine: F64, theirs: F64) -> int | None:
    """By how many steps the other's durations are later; None if no shift stands out."""
    one, two = _standard(mine), _standard(theirs)
    size = 1 << int(np.ceil(np.log2(len(one) + len(two))))
    products = np.fft.irfft(np.conj(np.fft.rfft(one, size)) * np.fft.rfft(two, size), size)
    shifts = np.concatenate([np.arange(size // 2), np.arange(-size // 2, 0)])
    overlap = np.minimum(len(one) - np.maximum(0, -shifts), len(two) - np.maximum(0, shifts))
    allowed = overlap >= max(MIN_OVERLAP, min(len(one), len(two)) // 4)
    if not allowed.any():
        return None
    agreed = np.where(allowed, products / np.maximum(overlap, 1), -np.inf)
    best = int(np.argmax(agreed))
    rest = agreed.copy()
    rest[best] = -np.inf
    if agreed[best] < MIN_CORRELATION or agreed[best] - rest.max() < AHEAD:
        return None
    return int(shifts[best])


def _standard(durations: F64) -> F64:
    """Durations with mean 0 and deviation 1, long ones clipped."""
    clipped = np.minimum(durations, MAX_CLIP * np.median(durations))
    spread = float(clipped.std())
    result: F64 = (clipped - clipped.mean()) / spread if spread else np.zeros(len(clipped))
    return result
