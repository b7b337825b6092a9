"""For whom the members of a job wait, by the time that is each one's own: no clocks are compared.

The member that others wait for has the shortest call, and who arrives last may only be far away. So a member is judged
by what it does between two calls: ``own``. In a step, the slowest's own time beyond that of the second is what the
others lose by it alone; beyond the median of the others, what it does more than they do.

Sources: wait states and their delay costs (Boehme et al., TOPC 2016); S_w of stragglers (arXiv 2505.05713).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.cluster.member_calls import MemberCalls
    from stepscope.derive.cluster.pairing import Pairing
    from stepscope.tables.records import F64, I64

FIRST_STEPS = 5
"""Steps left out at the beginning: functions are traced, caches filled."""
MIN_STEPS = 20
"""Fewest common steps that anything is said of."""
CHUNK = 1_024
RESAMPLES = 400
BLOCKS = 200
SEED = 25
TRANSFER_QUANTILE = 0.10
"""The fastest tenth of the steps shows what a transfer takes when nothing disturbs it."""


class Share(Struct, frozen=True, kw_only=True):
    """A share of the period, with its interval of 95 % (bootstrap over blocks of steps)."""

    ratio: float
    low: float
    high: float


class Blame(Struct, frozen=True, kw_only=True):
    """Whom members wait for. Shapes: [member], ns in the mean common step unless said."""

    steps: int
    """Number of common steps."""
    period_ns: float
    own_ns: F64
    """What each did alone."""
    own_median_ns: F64
    own_spread_ns: F64
    """Median deviation of the own time."""
    waits_ns: F64
    """How long it waited for the slowest."""
    blame_ns: F64
    """Own time beyond the median of the others."""
    blame_median_ns: F64
    last_ratio: F64
    """Share of the steps in which its own time was the longest."""
    gain: tuple[Share, ...]
    """By how much the period falls if it alone did only what the others do."""
    spread_median_ns: float
    """Longest own time beyond the median of the others, in the median step."""
    even: Share
    """By how much the period falls if the longest own time were the median of the others in every step."""
    transfer_ns: float
    """What is left of the call of the member that waits least: transfer, and the collective itself."""
    transfer_usual_ns: float
    """The same in the fastest tenth of the steps."""


def common(members: Sequence[MemberCalls], pairing: Pairing) -> I64:
    """Rows of the pairing in which every synchronous member's step is usable, the first steps left out."""
    usable = np.ones(len(pairing.rows), bool)
    for j, calls in enumerate(members):
        if pairing.synchronous[j]:
            rows = pairing.rows[:, j]
            lacks = (rows >= 1) & ~calls.usable[rows]
            usable &= ~lacks
    there = (pairing.rows[:, list(_those(pairing))] >= 1).sum(axis=1) > 1
    found: I64 = np.flatnonzero(usable & there)
    return found[found >= FIRST_STEPS]


def _those(pairing: Pairing) -> I64:
    return np.flatnonzero(pairing.synchronous)


def build(members: Sequence[MemberCalls], pairing: Pairing, inside_ns: Sequence[float] = ()) -> Blame | None:
    """Whom the synchronous members wait for; None with fewer than two of them, or too few common steps.

    Args:
        members: the calls of each, as paired.
        pairing: which steps are the same.
        inside_ns: of each member, what it computes inside the call before it waits, if op traces of all show it.
    """
    steps, those = common(members, pairing), _those(pairing)
    if len(those) <= 1 or len(steps) < MIN_STEPS:
        return None
    inside = np.array([inside_ns[j] for j in those]) if len(inside_ns) else np.zeros(len(those))
    own, call = _gathered(members, pairing, steps, those)
    own += inside
    call -= inside
    period = _periods(members[pairing.reference], pairing.rows[steps, pairing.reference])
    return _of(own, call, period, len(members), those)


def of_steps(own: F64, exchange: F64, period: F64) -> Blame:
    """Whom the parts of one process wait for, by what each did alone and its time in exchanges in the same steps.

    What one did longer counts where the others were as much longer in the exchange: else none waited for it.

    Shapes: ``own``, ``exchange`` float64[step, part]; ``period`` float64[step]. Units: ns.
    """
    return _of(waited_for(own, exchange), exchange, period, own.shape[1], np.arange(own.shape[1]))


def waited_for(own: F64, exchange: F64) -> F64:
    """``own``, of which what is beyond the median of the others is only what the others waited for."""
    usual = median_of_others(own, np.sort(own, axis=1))
    waited = median_of_others(exchange, np.sort(exchange, axis=1)) - exchange
    return np.where(own > usual, usual + np.minimum(own - usual, np.maximum(waited, 0.0)), own)


def _of(own: F64, call: F64, period: F64, count: int, those: I64) -> Blame:
    found = _Sums(own)
    for first in range(0, len(own), CHUNK):
        found.add(slice(first, first + CHUNK), own, call)
    return found.blame(period, count, those)


def gain_of(
    members: Sequence[MemberCalls], pairing: Pairing, group: Sequence[int], inside_ns: Sequence[float]
) -> Share:
    """By how much the period falls if all of a group did only what the slowest of the other members does."""
    steps, those = common(members, pairing), _those(pairing)
    own, _ = _gathered(members, pairing, steps, those)
    own += np.array([inside_ns[j] for j in those]) if len(inside_ns) else 0.0
    own = np.where(np.isnan(own), -np.inf, own)
    gain = own.max(axis=1) - own[:, ~np.isin(those, list(group))].max(axis=1)
    gain = np.where(np.isfinite(gain), np.maximum(gain, 0.0), 0.0)
    period = _periods(members[pairing.reference], pairing.rows[steps, pairing.reference])
    return _shares(np.zeros(len(period), np.int64), gain, period, 1)[0]


def own_times(
    members: Sequence[MemberCalls], pairing: Pairing, inside_ns: Sequence[float] = ()
) -> tuple[I64, I64, F64]:
    """Rows of the common steps, the synchronous members, what each did alone: float64[step, member], NaN: unknown."""
    steps, those = common(members, pairing), _those(pairing)
    own, _ = _gathered(members, pairing, steps, those)
    own += np.array([inside_ns[j] for j in those]) if len(inside_ns) else 0.0
    return steps, those, own


def transfers(
    members: Sequence[MemberCalls], pairing: Pairing, inside_ns: Sequence[float] = ()
) -> tuple[I64, F64, F64]:
    """Of each common step its row in the pairing, the exchange without waits (inf: not known), and the period."""
    steps, those = common(members, pairing), _those(pairing)
    own, call = _gathered(members, pairing, steps, those)
    inside = np.array([inside_ns[j] for j in those]) if len(inside_ns) else np.zeros(len(those))
    own, call = own + inside, call - inside
    filled = np.where(np.isnan(own), np.nanmedian(own, axis=1)[:, None], own)
    period = _periods(members[pairing.reference], pairing.rows[steps, pairing.reference])
    return steps, _exchange(filled, call)[1], period


def share_of(gain: F64, period: F64) -> Share:
    """A share of the period, with its interval, of what each step would be shorter by; it may be longer in some."""
    return _shares(np.zeros(len(period), np.int64), gain, period, 1)[0]


def _exchange(own: F64, call: F64) -> tuple[F64, F64]:
    """What each member waits in its call for the slowest, and what is left of the call of the one that waits least."""
    waits = np.minimum(own.max(axis=1, keepdims=True) - own, np.maximum(call, 0.0))
    left = np.where(np.isnan(call), np.inf, np.maximum(call - waits, 0.0))
    return waits, np.min(left, axis=1)


def _gathered(members: Sequence[MemberCalls], pairing: Pairing, steps: I64, those: I64) -> tuple[F64, F64]:
    """Own time and call, float64[common step, synchronous member]; NaN where a member lacks the step."""
    own, call = np.empty((len(steps), len(those))), np.empty((len(steps), len(those)))
    for column, j in enumerate(those):
        rows = pairing.rows[steps, j]
        there = rows >= 0
        own[:, column] = np.where(there, members[j].own_ns[rows], np.nan)
        call[:, column] = np.where(there, members[j].call_ns[rows], np.nan)
    return own, call


def _periods(reference: MemberCalls, rows: I64) -> F64:
    before = np.maximum(rows - 1, 0)
    period: F64 = (reference.exits[rows] - reference.exits[before]).astype(np.float64)
    return period


class _Sums:
    """What the steps of a chunk add."""

    def __init__(self, own: F64) -> None:
        count, members = own.shape
        self.excess = np.zeros((count, members), np.float32)
        self.last = np.zeros(count, np.int64)
        self.gain = np.zeros(count)
        self.spread = np.zeros(count)
        self.transfer = np.zeros(count)
        self.waited = np.zeros(members)
        self.present = np.zeros(members)
        self.own = own

    def add(self, rows: slice, own: F64, call: F64) -> None:
        mine = own[rows]
        absent = np.isnan(mine)
        middle = np.nanmedian(mine, axis=1)
        filled = np.where(absent, middle[:, None], mine)
        ordered = np.sort(filled, axis=1)
        self.excess[rows] = np.where(absent, np.nan, np.maximum(0.0, filled - median_of_others(filled, ordered)))
        self.last[rows] = np.argmax(np.where(absent, -np.inf, mine), axis=1)
        self.gain[rows] = ordered[:, -1] - ordered[:, -2]
        self.spread[rows] = np.take_along_axis(self.excess[rows], self.last[rows, None], axis=1)[:, 0]
        waits, self.transfer[rows] = _exchange(filled, call[rows])
        self.waited += np.nansum(np.where(absent, 0.0, waits), axis=0)
        self.present += (~absent).sum(axis=0)

    def blame(self, period: F64, count: int, those: I64) -> Blame:
        def spread_out(values: F64) -> F64:
            result = np.full(count, np.nan)
            result[those] = values
            return result

        present = np.maximum(self.present, 1.0)
        medians = np.nanmedian(self.own, axis=0)
        shares = _shares(self.last, self.gain, period, len(those))
        gains = {int(j): shares[column] for column, j in enumerate(those)}
        finite = self.transfer[np.isfinite(self.transfer)]
        return Blame(
            steps=len(period),
            period_ns=float(period.mean()),
            own_ns=spread_out(np.nanmean(self.own, axis=0)),
            own_median_ns=spread_out(medians),
            own_spread_ns=spread_out(np.nanmedian(np.abs(self.own - medians), axis=0)),
            waits_ns=spread_out(self.waited / present),
            blame_ns=spread_out(np.nanmean(self.excess, axis=0)),
            blame_median_ns=spread_out(np.nanmedian(self.excess, axis=0)),
            last_ratio=spread_out(np.bincount(self.last, minlength=len(those)) / present),
            gain=tuple(gains.get(j, Share(ratio=0.0, low=0.0, high=0.0)) for j in range(count)),
            spread_median_ns=float(np.median(self.spread)),
            even=_shares(np.zeros(len(period), np.int64), self.spread, period, 1)[0],
            transfer_ns=float(finite.mean()) if len(finite) else 0.0,
            transfer_usual_ns=float(np.quantile(finite, TRANSFER_QUANTILE)) if len(finite) else 0.0,
        )


def median_of_others(values: F64, ordered: F64) -> F64:
    """For each entry the median of the other entries of its row. ``ordered``: ``values`` sorted by rows."""
    others = values.shape[1] - 1
    low, high = (others - 1) // 2, others // 2
    result: F64 = (_other(values, ordered, low) + _other(values, ordered, high)) / 2
    return result


def _other(values: F64, ordered: F64, place: int) -> F64:
    """For each entry the one at ``place`` of its row without it."""
    here = ordered[:, place : place + 1]
    found: F64 = np.where(values > here, here, ordered[:, place + 1 : place + 2])
    return found


def _shares(of: I64, gain: F64, period: F64, count: int) -> list[Share]:
    """Share of the period that the gains of each member are, with intervals over blocks of neighbouring steps."""
    block = np.arange(len(period)) * min(BLOCKS, len(period)) // len(period)
    blocks = int(block[-1]) + 1
    gains = np.bincount(block * count + of, weights=gain, minlength=blocks * count).reshape(blocks, count)
    periods = np.bincount(block, weights=period, minlength=blocks)
    draws = np.random.default_rng(SEED).multinomial(blocks, np.full(blocks, 1 / blocks), RESAMPLES)
    sums = draws @ periods
    low, high = np.quantile((draws @ gains) / sums[:, None], [0.025, 0.975], axis=0)
    ratio = gains.sum(axis=0) / periods.sum()
    return [
        Share(ratio=float(r), low=float(min(lo, r)), high=float(max(hi, r)))
        for r, lo, hi in zip(ratio, low, high, strict=True)
    ]
