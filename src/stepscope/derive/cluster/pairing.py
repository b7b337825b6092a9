"""Which step of each member is the same step of the job: the one that all of them leave together.

Steps are never paired by their number: a member may start late, restart, or lose records. Where clocks are aligned, a
step is the one that ends nearest; where they are not, the rhythm of the steps says how members are shifted, since what
delays one delays all. Members whose calls do not end together are not synchronous: no other waits for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from stepscope.derive.cluster.member_calls import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.cluster.clock import ClockOffset
    from stepscope.derive.cluster.member_calls import MemberCalls
    from stepscope.model.records import F64, I64

Basis = Literal["clock", "rhythm", "count", "none"]
"""What steps were paired by. clock: aligned clocks. rhythm: the pattern of their durations. count: equal numbers of
them, and nothing that contradicts it."""

MAX_SPREAD = 0.15
"""Spread (median deviation) of the differences between ends, in periods, up to which members end together. Ends that
have nothing to do with each other have 0.25."""
MIN_MATCHED = 0.5
"""Share of the shorter member's steps that must have a partner."""
MIN_CORRELATION = 0.5
AHEAD = 0.1
"""By how much the best shift must correlate better than any other."""
MIN_OVERLAP = 20
MAX_CLIP = 5.0
"""Durations above so many medians count as so many, so that one long step does not decide the shift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
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
    known, base = clocks[reference], first.exits != NONE
    numbers = np.flatnonzero(base)
    for j, (other, clock) in enumerate(zip(members, clocks, strict=True)):
        if j == reference:
            continue
        theirs = np.flatnonzero(other.exits != NONE)
        if min(len(numbers), len(theirs)) < MIN_OVERLAP:
            continue
        ends, its = first.exits[numbers], other.exits[theirs]
        period = max(first.period_ns, 1.0)
        if known is not None and clock is not None and known.widest_ns + clock.widest_ns < period / 2:
            basis[j] = "clock"
            here, there = known.aligned(ends), clock.aligned(its)
        else:
            basis[j], here, there = _by_rhythm(ends, its)
        if basis[j] == "none":
            continue
        mine, its_steps, apart = _nearest(here, there, period)
        rows[numbers[mine], j] = theirs[its_steps]
        if len(apart):
            spread[j] = float(np.median(np.abs(apart - np.median(apart)))) / period
        enough = len(mine) >= MIN_MATCHED * min(len(numbers), len(theirs))
        synchronous[j] = bool(enough and spread[j] <= MAX_SPREAD)
    return Pairing(
        rows=rows, reference=reference, basis=tuple(basis), spread=tuple(spread), synchronous=tuple(synchronous)
    )


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


def _by_rhythm(ends: I64, its: I64) -> tuple[Basis, F64, F64]:
    """The other's ends on the clock of ``ends``, by the shift at which their durations agree best."""
    shift, basis = _shift(np.diff(ends).astype(np.float64), np.diff(its).astype(np.float64)), "rhythm"
    if shift is None:
        shift, basis = 0, "count"
        if len(ends) != len(its):
            return "none", ends.astype(np.float64), its.astype(np.float64)
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
    return ("rhythm" if basis == "rhythm" else "count"), ends.astype(np.float64), moved


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
