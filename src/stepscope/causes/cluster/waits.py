"""For whom the members of a job wait, and what of the step is the exchange itself.

Serves DST001, DST002, DST003, DST006 and the report's part on the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import members as of_job
from stepscope.derive.cluster import blame, pairing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.causes.cluster.member import Member
    from stepscope.derive.cluster.blame import Blame
    from stepscope.derive.cluster.clock import ClockOffset
    from stepscope.derive.cluster.member_calls import MemberCalls
    from stepscope.derive.cluster.pairing import Pairing
    from stepscope.derive.view import SessionView
    from stepscope.model.report.components import ComponentName

UNEVEN = 0.10
"""By how much the largest batch exceeds the smallest where they are uneven."""
MIN_INSIDE = 0.10
"""Difference between what members compute inside the call, as a share of the period, from which it counts."""


class Waits(Struct, frozen=True, kw_only=True):
    """The members that make steps, paired, and the blame if they are synchronous."""

    members: tuple[Member, ...]
    clocks: tuple[ClockOffset | None, ...]
    calls: tuple[MemberCalls, ...]
    pairing: Pairing
    blame: Blame | None
    inside_ns: tuple[float, ...]
    """What each computes inside the call before it waits, by op traces of all; empty: not known, or the same."""

    def components_beyond(self, member: int) -> list[tuple[ComponentName, float]]:
        """By how much each component of a member's step is longer than the median of the others', longest first."""
        mine = self.members[member].components
        others = [one.components for j, one in enumerate(self.members) if j != member and self.pairing.synchronous[j]]
        if not others:
            return []
        more = [(name, ns - float(np.median([one.get(name, 0.0) for one in others]))) for name, ns in mine.items()]
        return sorted((pair for pair in more if pair[0] != "call"), key=lambda pair: -pair[1])

    def batch_explains(self, member: int) -> bool:
        """Whether what a member does longer is to compute, on the largest batch."""
        samples = [one.samples for one, there in zip(self.members, self.pairing.synchronous, strict=True) if there]
        mine = self.members[member].samples
        largest = min(samples) > 0 and mine == max(samples) and mine >= (1 + UNEVEN) * min(samples)
        python = max((ns for _, ns in self.components_beyond(member)), default=0.0)
        return largest and self.inside_beyond_ns(member) > max(0.0, python)

    def inside_beyond_ns(self, member: int) -> float:
        """What a member computes inside the call beyond the median of the others; 0 if not known or the same."""
        if not self.inside_ns:
            return 0.0
        others = [self.inside_ns[j] for j in range(len(self.members)) if j != member and self.pairing.synchronous[j]]
        return self.inside_ns[member] - float(np.median(others)) if others else 0.0


def build(view: SessionView) -> Waits | None:
    """The waits; None if fewer than two members make steps."""
    members = tuple(member for member in view.get(of_job.build) if member.calls)
    if len(members) <= 1:
        return None
    clocks = of_job.clocks(members)
    calls = _chosen(members, clocks)
    paired = pairing.pair(calls, clocks)
    inside = _inside(members, paired, calls[paired.reference].period_ns)
    return Waits(
        members=members,
        clocks=clocks,
        calls=calls,
        pairing=paired,
        blame=blame.build(calls, paired, inside),
        inside_ns=inside,
    )


def _chosen(members: Sequence[Member], clocks: Sequence[ClockOffset | None]) -> tuple[MemberCalls, ...]:
    """The call of each member in which it waits: of those that all have, the one whose ends lie closest together.

    Without a choice, or if no such call ends together, the longest.
    """
    longest = tuple(member.calls[0] for member in members)
    shared = [name for name in (c.name for c in members[0].calls) if all(_named(m, name) for m in members)]
    if len(shared) <= 1 or any(clock is None for clock in clocks):
        return longest
    options = [tuple(call for m in members if (call := _named(m, name)) is not None) for name in shared]
    return min(options, key=lambda calls: max(pairing.pair(calls, clocks).spread))


def _named(member: Member, name: str) -> MemberCalls | None:
    return next((call for call in member.calls if call.name == name), None)


def _inside(members: Sequence[Member], paired: Pairing, period: float) -> tuple[float, ...]:
    """What each computes inside the call, by op traces of all synchronous members; empty if one lacks a trace, or if no
    member clearly computes longer than all others: some traced steps do not show small differences.
    """
    traced = {j: m.computes_ns for j, m in enumerate(members) if paired.synchronous[j]}
    known = {j: ns for j, ns in traced.items() if ns is not None}
    if len(known) <= 1 or len(known) < len(traced):
        return ()
    medians = {j: float(np.median(ns)) for j, ns in known.items()}
    slowest = max(medians, key=lambda j: medians[j])
    others = [j for j in known if j != slowest]
    beyond = medians[slowest] - float(np.median([medians[j] for j in others]))
    apart = np.quantile(known[slowest], 0.25) > max(np.quantile(known[j], 0.75) for j in others)
    if beyond < MIN_INSIDE * period or not apart:
        return ()
    return tuple(medians.get(j, 0.0) for j in range(len(members)))
