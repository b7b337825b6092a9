"""The exchange between the members of a job takes much of each step, even for the one that waits least.

## What it detects
Members that step together, of which even the one that waits least spends a quarter of its step or more in collectives
while none of its ops runs: the exchange itself takes that time, not the wait for a slower member.

## Why it matters
More members make such a job hardly faster. Compute that gets faster does not help either.

## Evidence
`exchange_ratio`: share of the mean common step, the least of the members. `sent_bytes`: what the member that sends most
sends in a step. The link that the network holds, if one is: `lost_ratio`, `min_rtt_ns` or `delivery_bytes_s`, by the
kernel's counters of its connections.

## Known limits
Needs an op trace of a member, and a job without parameter servers. Transfers that do not use TCP have no link. What
another link, or fewer bytes, would bring is not known: the share is an upper bound.

## Remedy
Exchange less often or less at once: a larger batch for each member, several batches for each update, fewer and larger
collectives, gradients of half the width. Where one link is lossy, slow or far, repair it or place the members nearer.

## References
TensorFlow's guide to multi-worker training; scaling of synchronous data parallelism (Goyal et al., 2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.cluster import exchange, lost_packets, members
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, severity_of
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.exchange import Exchange
    from stepscope.causes.system.link_limits import LinkLimit
    from stepscope.derive.view import SessionView

MOSTLY = 0.5
"""Share of the exchange from which lost packets are what it is."""
LESS_OFTEN = Remedy(
    id="exchange-less-often",
    text="use a larger batch for each member, or several batches for each update: fewer exchanges for the same samples",
)
LESS_AT_ONCE = Remedy(
    id="exchange-less",
    text="send fewer bytes for each sample: gradients of half the width, a larger batch for each member, several "
    "batches for each update",
)
MEND_THE_LINK = Remedy(
    id="mend-the-link", text="repair that link, or place the members where they reach each other better"
)


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Share of the common step."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found, lost = view.get(exchange.build), view.get(lost_packets.build)
    if found is None or found.ratio < params.min_ratio:
        return
    if lost is None or lost.share.ratio < MOSTLY * found.ratio:  # else said by DST006
        yield _finding(found, params)


def _finding(found: Exchange, params: Params) -> Seen:
    limit = found.limit
    why = _sentence(limit) if limit is not None else "no link is held by the network"
    sends = f"; a member sends {format_bytes(found.sent_bytes)} in a step" if found.sent_bytes else ""
    evidence = [
        Evidence(
            metric="exchange_ratio",
            value=found.ratio,
            unit="ratio",
            threshold=params.min_ratio,
            refs=("component:call",),
        )
    ]
    if found.sent_bytes:
        evidence.append(Evidence(metric="sent_bytes", value=found.sent_bytes, unit="bytes"))
    if limit is not None:
        evidence.append(_measured(limit))
    return Seen(
        title=f"the exchange between the members itself takes {format_ratio(found.ratio)} of each step "
        f"({format_ns(found.ns)}), without waits for slower ones: {why}{sends}",
        confidence=0.8,
        severity=severity_of(found.ratio) if limit is not None else "ask",
        evidence=tuple(evidence),
        cost=Cost(ratio=0.0, low=0.0, high=found.ratio, basis="unknown"),
        remedies=_remedies(limit),
    )


def _remedies(limit: LinkLimit | None) -> tuple[Remedy, ...]:
    if limit is None:
        return (LESS_OFTEN,)
    return (LESS_AT_ONCE if limit.reason == "rate" else LESS_OFTEN, MEND_THE_LINK)


def _sentence(limit: LinkLimit) -> str:
    use, between = limit.use, f"between {limit.link.here} and {limit.link.there}"
    if limit.reason == "loss":
        return f"{format_ratio(use.lost_ratio)} of the bytes {between} are lost and sent again"
    if limit.reason == "rate":
        return f"the path {between} carries no more than {format_rate(8e-6 * use.delivery_bytes_s)} Mbit/s"
    if limit.reason == "distance":
        return f"a round trip {between} takes {format_ns(use.min_rtt_ns)}"
    return f"the send buffer of a connection {between} is full {format_ratio(use.buffer_ratio)} of its busy time"


def _measured(limit: LinkLimit) -> Evidence:
    use = limit.use
    if limit.reason == "loss":
        return Evidence(metric="lost_ratio", value=use.lost_ratio, unit="ratio")
    if limit.reason == "rate":
        return Evidence(metric="delivery_bytes_s", value=use.delivery_bytes_s, unit="bytes/s")
    if limit.reason == "distance":
        return Evidence(metric="min_rtt_ns", value=float(use.min_rtt_ns), unit="ns")
    return Evidence(metric="buffer_ratio", value=use.buffer_ratio, unit="ratio")


DETECTOR = Detector(
    code="DST005",
    name="exchange-dominates",
    cause="Data: inefficient data transmission",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="gradient-sharing",
    needs=frozenset({Signal.MEMBERS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)
