"""What the exchange between the members of a job takes of a step, without their waits, and which link holds it.

A member that waits for a slower one does so inside the exchange. So the exchange itself is what is left with the member
that waits least: its op trace shows how much of its steps lies in collectives while no op runs, and its waits by own
time are taken off.

Serves DST005 and the report's part on the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.cluster import waits
from stepscope.causes.system import link_limits

if TYPE_CHECKING:
    from stepscope.causes.cluster.member import Member
    from stepscope.causes.system.link_limits import LinkLimit
    from stepscope.derive.view import SessionView

NETWORK = frozenset({"rate", "loss", "distance", "send-buffer"})
"""What holds a link and is the network's: a slow reader is a slow member."""


class Exchange(Struct, frozen=True, kw_only=True):
    """The exchange of the synchronous members."""

    ratio: float
    """Share of the mean common step."""
    ns: float
    """The same of the mean common step."""
    traced: int
    """Number of members with an op trace."""
    sent_bytes: float
    """What the member that sends most sends in a step; 0: unknown."""
    limit: LinkLimit | None
    """The busiest link that the network holds."""


def build(view: SessionView) -> Exchange | None:
    """The exchange; None if no members step together, or no op trace shows one."""
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return None
    period_ns, there = found.blame.period_ns, found.pairing.synchronous
    together = [(j, member) for j, member in enumerate(found.members) if there[j]]
    alone = [
        max(0.0, member.exchange_ratio - float(found.blame.waits_ns[j]) / period_ns)
        for j, member in together
        if member.exchange_ratio is not None
    ]
    if not alone:
        return None
    limits = [(member, limit) for _, member in together for limit in member.open().get(link_limits.build)]
    held = [limit for _, limit in limits if limit.reason in NETWORK]
    return Exchange(
        ratio=min(alone),
        ns=min(alone) * period_ns,
        traced=len(alone),
        sent_bytes=max((_sent_bytes(member) for _, member in together), default=0.0),
        limit=max(held, key=lambda limit: limit.use.busy_ratio, default=None),
    )


def _sent_bytes(member: Member) -> float:
    view = member.open()
    count = view.steps.steady_count if view.steps is not None else 0
    return sum(limit.link.sent_bytes for limit in view.get(link_limits.build)) / count if count else 0.0
