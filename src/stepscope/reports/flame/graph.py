"""What a flame graph is drawn from: a profile made ready, and what has to be said beside every picture of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.stacks.call_tree import function_keys, function_totals
from stepscope.derive.stacks.drawn_tree import drawn
from stepscope.derive.stacks.frame_kinds import classified
from stepscope.derive.stacks.health import Health, health, with_roots_checked, without_idle
from stepscope.derive.stacks.merge_profiles import function_of, paired
from stepscope.derive.stacks.op_of_pool_thread import has_ops_at_samples, without_ops_at_samples
from stepscope.derive.stacks.profile_difference import Difference, difference, sample_weight
from stepscope.model.session.stacks import FrameKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.stacks.profile_difference import Basis
    from stepscope.model.session.stacks import Frame, StackProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One profile, ready to be drawn."""

    profile: StackProfile
    """Every sample has a stack, truncated ones stand apart, kinds are said, idle tasks are gone."""
    source: str
    """The session or file, as the user named it."""
    health: Health
    idle: float
    """Weight of idle tasks that was left out."""
    window: str = ""
    """What part of the session it is, in words."""
    hidden: float = 0.0
    """Weight outside of that part."""

    @property
    def samples(self) -> float:
        """Samples behind it, as far as that is known."""
        counts = self.profile.samples.count
        return float(counts.sum()) if counts.all() else self.profile.total / sample_weight(self.profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """A function's weights, as shares of the whole."""

    function: Frame
    self_weight: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two profiles on one tree, and what differs."""

    before: Graph
    after: Graph
    difference: Difference


def graph(profile: StackProfile, *, source: str, window: str = "", hidden: float = 0.0) -> Graph:
    """Make a profile ready."""
    busy, idle = without_idle(with_roots_checked(classified(profile)))
    return Graph(
        profile=drawn(busy),
        source=source,
        health=health(busy),
        idle=idle,
        window=window,
        hidden=hidden,
    )


def compare(before: Graph, after: Graph, *, basis: Basis, work: tuple[float, float]) -> Compared:
    """Put two profiles on one tree and test what differs. A function is the same wherever its files lie.

    Ops that an op trace has told stand in stacks only where there was one: they count where both profiles have some.
    """
    one, other = before.profile, after.profile
    if has_ops_at_samples(one) != has_ops_at_samples(other):
        one, other = without_ops_at_samples(one), without_ops_at_samples(other)
    pair = paired(one, other, same=function_of)
    return Compared(
        before=replace(before, profile=pair.before),
        after=replace(after, profile=pair.after),
        difference=difference(pair, basis=basis, work=work),
    )


def kind_shares(profile: StackProfile) -> Mapping[FrameKind, float]:
    """Share of the weight in each kind of code by the innermost frame, the largest first."""
    kinds = np.array([frame.kind for frame in profile.frames], np.int64)
    leaves = kinds[profile.stacks.frame[profile.samples.stack]] if len(profile.samples) else np.empty(0, np.int64)
    sums = np.bincount(leaves, profile.samples.weight, minlength=len(FrameKind))
    total = sums.sum()
    found = [(FrameKind(kind), float(sums[kind] / total)) for kind in np.argsort(-sums, kind="stable") if sums[kind]]
    return dict(found)


def top_functions(profile: StackProfile, most: int) -> Sequence[FunctionRow]:
    """The functions with the largest self weight."""
    keys, shown = function_keys(profile.frames)
    totals = function_totals(profile, profile.samples.weight, keys)
    order = np.lexsort((-totals.total, -totals.self_weight))[:most]
    return [
        FunctionRow(function=shown[i], self_weight=float(totals.self_weight[i]), total=float(totals.total[i]))
        for i in order.tolist()
        if totals.self_weight[i] > 0
    ]
