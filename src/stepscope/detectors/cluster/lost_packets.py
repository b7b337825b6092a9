"""Steps wait for packets between the members of a job that were lost and sent again.

## What it detects
A job whose members step together, and whose exchange takes clearly longer in the steps in which a packet between two
of them was sent again than in the others. Or members that do not step together, as workers of a parameter server: one
whose calls take clearly longer in such steps than in the others that are nearest to them.

## Why it matters
A collective ends when the last of its bytes has come. A lost packet is sent again after a round trip at best, and
after 200 ms or more where nothing follows it; all members wait for it. A call that reads from a parameter server or
writes to it ends no sooner.

## Evidence
`lost_steps`: common steps with such a packet, of `common_steps`. `exchange_ns` and `usual_ns`: the exchange of these
steps and of the others, waits for slower members taken off. `packets`: how many were sent again in them. Of members
that do not step together: steps and calls of the one that loses most.

## Known limits
Needs to see which packets were sent again, which takes rights and Linux; transfers that do not use TCP are not seen.
Where most of what a connection sent again had arrived (the receiver says so), nothing was lost: it was acknowledged
late, because a member or something on the path got no CPU. It does not count.
Where nearly every step has one there is nothing to compare it with: DST005 then names the link. Of members that do not
step together only what they sent themselves counts where the clocks of the hosts were not compared: steps that wait for
what a server sends again stand among the others, and the cost is a lower bound.

## Remedy
Mend the link: its cable, a switch that drops, a queue that is too short, a limit of the rate. Place the members nearer,
or exchange less at once.

## References
RFC 6298 (retransmission timer); Linux, net.ipv4.tcp_retries1 and tracepoint tcp_retransmit_skb. RFC 2883
(duplicates that the receiver reports).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.cluster import lost_packets, members
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.lost_packets import LostPackets
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Least share of the period that the exchange takes longer for it, at the lower end of its interval."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(lost_packets.build)
    if found is not None and found.share.low >= params.min_ratio:
        yield _finding(found, params)


def _finding(found: LostPackets, params: Params) -> Seen:
    source, target = found.link
    whose, what = (f"steps of {found.alone}", "its call") if found.alone else ("steps", "the exchange")
    number, longest, packets = found.worst
    here = f"; this host drops them ({found.reason})" if found.reason else ""
    return Seen(
        title=f"packets from {source} to {target} are lost and sent again{here}: in {found.steps:,} of {found.of:,} "
        f"{whose} {what} takes {format_ns(found.with_ns)} instead of {format_ns(found.without_ns)}",
        confidence=0.8,
        evidence=(
            Evidence(metric="lost_steps", value=float(found.steps), unit="steps"),
            Evidence(metric="common_steps", value=float(found.of), unit="steps"),
            Evidence(metric="exchange_ns", value=found.with_ns, unit="ns"),
            Evidence(metric="usual_ns", value=found.without_ns, unit="ns"),
            Evidence(metric="packets", value=float(found.packets), unit="packets"),
            Evidence(metric="longer_ratio", value=found.share.low, unit="ratio", threshold=params.min_ratio),
        ),
        cost=Cost(
            ratio=found.share.ratio,
            low=max(0.0, found.share.low),
            high=found.share.high,
            ns_per_step=round(found.share.ratio * found.period_ns),
        ),
        remedies=(
            Remedy(
                id="mend-the-link",
                text="find where they are dropped: a queue that is too short, a limit of the rate, a faulty cable or "
                "switch; or place the members where they reach each other better",
            ),
        ),
        explanation=f"The longest of these {'calls' if found.alone else 'exchanges'} was in step {number:,}: "
        f"{format_ns(longest)}, with {packets:,} "
        f"packets that were sent again. {found.link_packets:,} were, from {source} to {target}, in all.",
    )


DETECTOR = Detector(
    code="DST006",
    name="lost-packets",
    cause="System: network",
    introduced_stage="environment setting",
    exposed_stage="training",
    pipeline_stage="gradient-sharing",
    needs=frozenset({Signal.MEMBERS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)
