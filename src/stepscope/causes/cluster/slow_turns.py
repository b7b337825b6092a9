"""What members do longer in the steps in which they are the slowest, where another one is in each step.

Their mean steps are alike, so components of the mean step say nothing. What a member does between two calls is split
into the components of the step, in the steps in which it was the slowest and in the others.

Serves DST002.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import waits
from stepscope.causes.general import spent_lines
from stepscope.derive import steps_view
from stepscope.derive.cluster import blame
from stepscope.derive.cluster.member_calls import NONE
from stepscope.derive.steps import anatomy

if TYPE_CHECKING:
    from stepscope.causes.cluster.member import Member
    from stepscope.causes.general.spent_lines import SpentLine
    from stepscope.derive.cluster.member_calls import MemberCalls
    from stepscope.derive.view import SessionView
    from stepscope.model.report.components import ComponentName
    from stepscope.tables.records import I64, Bool

MIN_STEPS = 5
"""Fewest steps in which a member is the slowest, and others, of which the means are compared."""


class SlowTurns(Struct, frozen=True, kw_only=True):
    """The component that is longer when a member is the slowest."""

    component: ComponentName
    ns: float
    """By how much, in the mean of these steps."""
    more_ns: float
    """By how much what they did alone was longer in all."""
    lines: tuple[SpentLine, ...]
    """Where the member that was the slowest most often spends it."""


def build(view: SessionView) -> SlowTurns | None:
    """What makes them slow in turn; None if no members step together, or none is slow often enough."""
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return None
    rows, those, own = blame.own_times(found.calls, found.pairing, found.inside_ns)
    last = those[np.argmax(np.where(np.isnan(own), -np.inf, own), axis=1)]
    total: dict[ComponentName, float] = {}
    steps = 0
    for j in those.tolist():
        numbers = found.pairing.rows[rows, j]
        parts = _parts(found.members[j], found.calls[j], numbers, (last == j) & (numbers > 0))
        if not parts:
            continue
        mine = int((last == j).sum())
        steps += mine
        for name, ns in parts.items():
            total[name] = total.get(name, 0.0) + ns * mine
    if not steps:
        return None
    name = max(total, key=lambda one: total[one])
    most = found.members[int(np.bincount(last).argmax())]
    there = steps_view.of(most.open())
    return SlowTurns(
        component=name,
        ns=total[name] / steps,
        more_ns=sum(total.values()) / steps,
        lines=spent_lines.of(there, name) if there is not None else (),
    )


def _parts(member: Member, calls: MemberCalls, numbers: I64, slowest: Bool) -> dict[ComponentName, float]:
    """By how much each component between two calls is longer in the steps in which the member is the slowest."""
    view = member.open()
    steps = view.steps
    others = ~slowest & (numbers > 0)
    if steps is None or min(slowest.sum(), others.sum()) < MIN_STEPS:
        return {}
    origin = view.session.manifest.origin_monotonic_ns
    split = {}
    for which, chosen in ((True, slowest), (False, others)):
        mine = numbers[chosen]
        begin, end = calls.exits[mine - 1] - origin, calls.entries[mine] - origin
        good = (calls.exits[mine - 1] != NONE) & (end > begin)
        order = np.argsort(begin[good], kind="stable")
        split[which] = anatomy.between(steps, (begin[good][order], end[good][order]))
    return {
        name: float(ns.mean() - split[False][name].mean())
        for name, ns in split[True].items()
        if len(ns) and len(split[False][name])
    }
