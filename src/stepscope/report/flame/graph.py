"""Input of a flame graph: a prepared profile, and the facts that accompany every drawing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.stacks.call_tree import function_keys, function_totals
from stepscope.derive.stacks.drawn_tree import drawn
from stepscope.derive.stacks.frame_kinds import classified
from stepscope.derive.stacks.health import Health, health, with_roots_checked, without_idle
from stepscope.derive.stacks.merge_profiles import function_of, paired
from stepscope.derive.stacks.op_of_pool_thread import has_ops_at_samples, without_ops_at_samples
from stepscope.derive.stacks.profile_difference import Difference, difference, sample_weight
from stepscope.tables.stacks import FrameKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.stacks.profile_difference import Basis
    from stepscope.tables.stacks import Frame, StackProfile


class Graph(Struct, frozen=True, kw_only=True):
    """One profile, ready to draw."""

    profile: StackProfile
    """Every sample has a stack, truncated stacks are separate, kinds are assigned, idle tasks are removed."""
    source: str
    """The session or file, as the user named it."""
    health: Health
    idle: float
    """Weight of the omitted idle tasks."""
    window: str = ""
    """The part of the session that it covers, in words."""
    hidden: float = 0.0
    """Weight outside that part."""
    of_run: bool = False
    """Whether it covers a whole run of a job, its start and end included."""

    @property
    def samples(self) -> float:
        """Number of samples, estimated from the weight if counts are missing."""
        counts = self.profile.samples.count
        return float(counts.sum()) if counts.all() else self.profile.total / sample_weight(self.profile)


class FunctionRow(Struct, frozen=True, kw_only=True):
    """A function's weights, as shares of the whole."""

    function: Frame
    self_weight: float
    total: float


class ComparedProfiles(Struct, frozen=True, kw_only=True):
    """Two profiles on one tree, and their difference."""

    before: Graph
    after: Graph
    difference: Difference
    scripts: tuple[str, str] = ("", "")
    """File names of the two programs, if they differ."""
    unit_of_work: str = ""
    """What weights are shown per: "step", "unit of work"; "": of all that was sampled."""


def graph(profile: StackProfile, *, source: str, window: str = "", hidden: float = 0.0, of_run: bool = False) -> Graph:
    """Prepare a profile for drawing."""
    busy, idle = without_idle(with_roots_checked(classified(profile)))
    return Graph(
        profile=drawn(busy),
        source=source,
        health=health(busy),
        idle=idle,
        window=window,
        hidden=hidden,
        of_run=of_run,
    )


def compare(
    before: Graph, after: Graph, *, basis: Basis, work: tuple[float, float], unit_of_work: str = ""
) -> ComparedProfiles:
    """Put two profiles on one tree and test the differences. Functions match even if their files have moved.

    Stacks contain ops only if there was an op trace; the ops are compared only if both profiles have them.
    """
    one, other = before.profile, after.profile
    if has_ops_at_samples(one) != has_ops_at_samples(other):
        one, other = without_ops_at_samples(one), without_ops_at_samples(other)
    pair = paired(one, other, same=function_of)
    return ComparedProfiles(
        before=replace(before, profile=pair.before),
        after=replace(after, profile=pair.after),
        difference=difference(pair, basis=basis, work=work),
        scripts=pair.scripts,
        unit_of_work=unit_of_work if basis == "work" else "",
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
