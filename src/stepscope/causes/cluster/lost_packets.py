"""What steps wait for packets between the members that were sent again: the exchange in steps with such, and without.

A member's own clock tells whether a packet was sent again within its call, so no clocks are compared.
What it costs is the difference between the mean exchange of both kinds of steps: the longest steps alone would count
what else made them long. Members that do not step together (workers of a parameter server) are judged one by one: a
call with such packets against the calls without that are nearest to it, because what else holds a member comes and goes
over minutes, and no other member's waits tell it from the exchange.

Serves DST005, DST006 and the report's part on the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import members as of_job
from stepscope.causes.cluster import waits
from stepscope.derive.cluster import blame, clock
from stepscope.derive.machine import tcp_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.causes.cluster.member import Member
    from stepscope.derive.cluster.blame import Share
    from stepscope.derive.cluster.clock import ClockOffset
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64

MIN_STEPS = 10
"""Fewest steps with and without, of which means are compared."""
NEAR = 10
"""Calls without, nearest to one with such packets, that it is compared with where members do not step together."""
MOST_ARRIVED = 0.5
"""Share of what a connection sent again that may have arrived all the same. Measured: all of it where members or the
path got no CPU and nothing was lost, 0 to 7 % where a path lost 1 %."""
AGAIN = -1
"""Reason of what was sent again."""
_DROP = "drop:"

End = tuple[str, str]
"""An end of a connection: the host if the address is of its loopback device, else ""; address and port."""


class LostPackets(Struct, frozen=True, kw_only=True):
    """What was lost between the members, and what their steps waited for it."""

    steps: int
    """Number of common steps with a packet that was sent again."""
    of: int
    """Number of common steps of which that is known."""
    alone: str
    """Where the members do not step together: the one whose steps these are, and its calls the exchange; else ""."""
    share: Share
    """Share of the period that the exchange takes longer for it."""
    period_ns: float
    """The mean period of all of them."""
    with_ns: float
    """The mean exchange of those steps."""
    without_ns: float
    """The mean exchange of the others."""
    packets: int
    link: tuple[str, str]
    """Members, sender first, between which most were sent again."""
    link_packets: int
    reason: str
    """Why this host dropped them, by the kernel's word; "": it did not drop half as many as were sent again."""
    worst: tuple[int, float, int]
    """Of the step with the longest exchange among them: number on the first member, exchange in ns, packets."""


def build(view: SessionView) -> LostPackets | None:
    """The packets; None if nothing was lost, or there are too few steps with or without."""
    found = view.get(waits.build)
    if found is None or (found.blame is None and sum(found.pairing.synchronous) <= 1):
        return _of_one(view.get(of_job.build))
    if found.blame is None:
        return None
    owners = _owners(found.members)
    there = found.pairing.synchronous
    lost = [_lost(j, member, owners) if there[j] else {} for j, member in enumerate(found.members)]
    if not any(lost):
        return None
    rows, transfer, period = blame.transfers(found.calls, found.pairing, found.inside_ns)
    counts = np.zeros(len(rows), np.int64)
    for j, links in enumerate(lost):
        numbers = found.pairing.rows[rows, j]
        calls = found.calls[j]
        for at in links.values():
            inside = np.searchsorted(at, calls.exits[numbers]) - np.searchsorted(at, calls.entries[numbers])
            counts += np.where(numbers >= 0, inside, 0)
    hit = (counts > 0) & np.isfinite(transfer)
    others = (counts == 0) & np.isfinite(transfer)
    if min(hit.sum(), others.sum()) < MIN_STEPS:
        return None
    usual = float(transfer[others].mean())
    longer = np.where(hit, transfer - usual, 0.0)
    worst = int(np.argmax(np.where(hit, transfer, -np.inf)))
    j, other = max(((j, other) for j, links in enumerate(lost) for other in links), key=lambda k: len(lost[k[0]][k[1]]))
    return LostPackets(
        steps=int(hit.sum()),
        of=int(hit.sum() + others.sum()),
        alone="",
        share=blame.share_of(longer, period),
        period_ns=float(period.mean()),
        with_ns=float(transfer[hit].mean()),
        without_ns=usual,
        packets=int(counts[hit].sum()),
        link=(found.members[j].name, found.members[other].name),
        link_packets=len(lost[j][other]),
        reason=_reason(found.members[j].open(), len(lost[j][other])),
        worst=(
            int(found.pairing.rows[rows[worst], found.pairing.reference]),
            float(transfer[worst]),
            int(counts[worst]),
        ),
    )


def _of_one(members: Sequence[Member]) -> LostPackets | None:
    """Of the member that loses most by it, where each steps for itself."""
    owners, clocks = _owners(members), of_job.clocks(members)
    lost = [_lost(j, member, owners) for j, member in enumerate(members)]
    every = (_of_member(j, members, clocks, lost) for j, member in enumerate(members) if member.calls)
    return max((one for one in every if one is not None), key=lambda one: one.share.low, default=None)


def _of_member(
    j: int, members: Sequence[Member], clocks: Sequence[ClockOffset | None], lost: Sequence[Mapping[int, I64]]
) -> LostPackets | None:
    own = clocks[j] or clock.same()
    links = {(j, other): own.aligned(at) for other, at in lost[j].items()}
    for other, offset in enumerate(clocks):  # what was sent to it: by the sender's clock, if both are known
        if j in lost[other] and offset is not None and clocks[j] is not None:
            links[other, j] = offset.aligned(lost[other][j])
    calls = members[j].calls[0]
    durations, period = calls.call_ns, np.diff(calls.exits, prepend=calls.exits[:1]).astype(np.float64)
    known = np.isfinite(durations) & (np.arange(len(durations)) >= blame.FIRST_STEPS)
    counts = np.zeros(len(durations), np.int64)
    for at in links.values():
        counts += np.searchsorted(at, own.aligned(calls.exits)) - np.searchsorted(at, own.aligned(calls.entries))
    hit, others = np.flatnonzero(known & (counts > 0)), np.flatnonzero(known & (counts == 0))
    if min(len(hit), len(others)) < MIN_STEPS:
        return None
    usual = np.array([durations[_nearest(others, row)].mean() for row in hit.tolist()])
    longer = np.zeros(len(durations))
    longer[hit] = durations[hit] - usual
    worst = int(hit[np.argmax(durations[hit])])
    sender, target = max(links, key=lambda link: len(links[link]))
    return LostPackets(
        steps=len(hit),
        of=len(hit) + len(others),
        alone=members[j].name,
        share=blame.share_of(longer[known], period[known]),
        period_ns=float(period[known].mean()),
        with_ns=float(durations[hit].mean()),
        without_ns=float(usual.mean()),
        packets=int(counts[hit].sum()),
        link=(members[sender].name, members[target].name),
        link_packets=len(links[sender, target]),
        reason=_reason(members[sender].open(), len(links[sender, target])),
        worst=(worst, float(durations[worst]), int(counts[worst])),
    )


def _nearest(others: I64, row: int) -> I64:
    """The ``NEAR`` of these that are nearest to a row. Shapes: ``others`` int64[step], sorted."""
    at = int(np.searchsorted(others, row))
    around = others[max(0, at - NEAR) : at + NEAR]
    return around[np.argsort(np.abs(around - row), kind="stable")[:NEAR]]


def _owners(members: Sequence[Member]) -> dict[End, int]:
    """Members by the ends of their connections."""
    found: dict[End, int] = {}
    for j, member in enumerate(members):
        session = member.open().session
        table = session.peers.tcp
        for number in np.unique(table.connection[table.pid == member.pid]).tolist():
            ends = _ends(member, number)
            if ends is not None:
                found[ends[0]] = j
    return found


def _ends(member: Member, number: int) -> tuple[End, End] | None:
    session = member.open().session
    words = session.resource_names
    ends = tcp_links.ends_of(words[number]) if 0 <= number < len(words) else None
    if ends is None:
        return None
    boot = session.manifest.host.boot_id
    here, there = ((boot if tcp_links.is_loopback(end.rpartition(":")[0]) else "", end) for end in ends)
    return here, there


def _lost(mine: int, member: Member, owners: Mapping[End, int]) -> dict[int, I64]:
    """When something was sent again to each other member, by the member's monotonic clock."""
    session = member.open().session
    table = session.peers.packets
    found: dict[int, list[I64]] = {}
    for number in np.unique(table.connection).tolist():
        ends = _ends(member, number)
        if ends is None or owners.get(ends[0]) != mine or owners.get(ends[1], mine) == mine:
            continue
        if _arrived(session, number) > MOST_ARRIVED:
            continue
        at = table.at_ns[(table.connection == number) & (table.reason == AGAIN)]
        found.setdefault(owners[ends[1]], []).append(at + session.manifest.origin_monotonic_ns)
    joined = {other: np.sort(np.concatenate(parts)) for other, parts in found.items()}
    return {other: at for other, at in joined.items() if len(at)}


def _arrived(session: Session, number: int) -> float:
    """Share of what a connection sent again that had arrived all the same, as the receiver says (DSACK)."""
    rows = session.peers.tcp.take(session.peers.tcp.connection == number)
    again = int(rows.retrans.max(initial=0))
    return float(rows.dsack_dups.max(initial=0)) / again if again else 0.0


def _reason(view: SessionView, again: int) -> str:
    """The most frequent reason why the host dropped packets when they were sent."""
    session = view.session
    table = session.peers.packets
    reasons = table.reason[(table.reason != AGAIN) & (table.arriving == 0)]
    if 2 * len(reasons) < again or not len(reasons):
        return ""
    numbers, counts = np.unique(reasons, return_counts=True)
    most = int(numbers[np.argmax(counts)])
    words = session.resource_names
    return words[most].removeprefix(_DROP) if 0 <= most < len(words) else ""
