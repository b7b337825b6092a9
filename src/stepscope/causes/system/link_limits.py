"""What holds a link between hosts: its distance, losses, a limited rate, a slow reader, or nothing of the network.

Slow links look alike from the steps: transfers take long. The kernel's counters of the connection tell them apart. Data
under way for a large share of the time says that the steps wait for the link at all. Then a queue (a round trip far
above the shortest one, with a delivery rate that the path bounds) says that the rate is limited; segments sent again,
that they were lost; a full window of the peer, that its reader is slow; a long shortest round trip, that it is far. A
link that is rarely busy is not what the steps wait for, however slow each transfer is: a worker is late.

The smoothed round trip alone says nothing: delayed acknowledgements and busy CPUs inflate it, and acknowledgements of a
peer whose own sending is limited come late.

Serves the report's links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stepscope.derive.machine import tcp_links

if TYPE_CHECKING:
    from stepscope.derive.machine.tcp_links import ConnectionUse, LinkUse
    from stepscope.derive.view import SessionView

Reason = Literal["rate", "peer-reads-slowly", "we-read-slowly", "loss", "distance", "send-buffer", "none"]

MIN_BUSY = 0.25
"""Share of the time with data under way below which the link is not what the steps wait for."""
FULL_BUSY = 0.8
"""A link at its rate is busy nearly all the time."""
MIN_LIMITED = 0.5
"""Share of the samples in which the path bounded the delivery rate."""
MIN_FILLED = 0.5
"""Rate while busy over the delivery rate: as much as the path delivers is being sent."""
MIN_QUEUE = 3.0
"""Round trip over the shortest one, of a standing queue; and at least ``MIN_QUEUE_NS`` above it."""
MIN_QUEUE_NS = 2_000_000
MIN_LOSS = 0.005
"""Share of bytes that were lost. Measured: 1.1 to 1.2 % where a relay lost 1 % of packets, up to 0.3 % on a crowded
machine without any loss."""
MIN_RECEIVER = 0.2
"""Share of the time in which the peer's window was full. Measured: 0.5 for a reader that pauses, 0.04 to 0.1 on a
crowded machine."""
MIN_BUFFER = 0.2
MIN_UNREAD = 0.5
"""Share of the looks that found unread data."""
FAR_NS = 5_000_000
"""Shortest round trip of what counts as far without steps to compare with."""
MIN_STEP = 0.1
"""Share of a step that one round trip takes, of what counts as far."""


class LinkLimit(Struct, frozen=True, kw_only=True):
    """A link and what holds it."""

    link: LinkUse
    reason: Reason
    use: ConnectionUse
    """The connection that shows it: the busiest one that is held, else the busiest."""


def build(view: SessionView) -> tuple[LinkLimit, ...]:
    """The links of the steady steps (of the whole session if there are none), those that carried most first."""
    steps = view.steps
    if steps is None or len(steps.windows[0]) == 0:
        return limits(tcp_links.of(view.session))
    period_ns = float(steps.durations[steps.steady].mean())
    return limits(tcp_links.of(view.session, *steps.span), period_ns)


def limits(links: tuple[LinkUse, ...], step_ns: float = 0.0) -> tuple[LinkLimit, ...]:
    """What holds each link; ``step_ns``: mean time of a step, 0 if there are none."""
    found = []
    for link in links:
        reasons = [(reason_of(use, step_ns), use) for use in link.connections]
        reason, use = next((pair for pair in reasons if pair[0] != "none"), reasons[0])
        found.append(LinkLimit(link=link, reason=reason, use=use))
    return tuple(found)


def reason_of(use: ConnectionUse, step_ns: float = 0.0) -> Reason:
    """What holds one connection, by its counters.

    Args:
        use: the connection's counters.
        step_ns: mean time of a step; 0: there are none.
    """
    queue_ns = use.rtt_ns - use.min_rtt_ns
    queued = use.min_rtt_ns >= 0 and queue_ns >= max(MIN_QUEUE_NS, (MIN_QUEUE - 1) * use.min_rtt_ns)
    filled = use.busy_bytes_s >= MIN_FILLED * use.delivery_bytes_s > 0 and use.limited_ratio >= MIN_LIMITED
    reasons: tuple[tuple[Reason, bool], ...] = (
        ("peer-reads-slowly", use.receiver_ratio * use.busy_ratio >= MIN_RECEIVER),
        ("rate", use.busy_ratio >= FULL_BUSY and queued and filled),
        ("loss", use.lost_ratio >= MIN_LOSS),
        ("distance", use.min_rtt_ns >= (MIN_STEP * step_ns if step_ns else FAR_NS)),
        ("send-buffer", use.buffer_ratio * use.busy_ratio >= MIN_BUFFER),
    )
    if use.unread_ratio >= MIN_UNREAD:
        return "we-read-slowly"
    return next((reason for reason, holds in reasons if holds and use.busy_ratio >= MIN_BUSY), "none")
