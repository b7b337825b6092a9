"""The report's links between hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.system import link_limits
from stepscope.model.report.machine.links import NetworkLink
from stepscope.tables.units import format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from stepscope.causes.system.link_limits import LinkLimit
    from stepscope.derive.view import SessionView
    from stepscope.model.report.machine.links import LinkReason

MAX_LINKS = 50
"""Links in a report, those that carried most."""
MIN_BYTES = 1_000_000
"""A link that carried less is left out."""


def build(view: SessionView) -> tuple[NetworkLink, ...]:
    """Those that carried most first."""
    found = view.get(link_limits.build)
    used = [one for one in found if one.link.sent_bytes + one.link.received_bytes >= MIN_BYTES]
    return tuple(_row(one) for one in used[:MAX_LINKS])


def _row(found: LinkLimit) -> NetworkLink:
    link, use = found.link, found.use
    return NetworkLink(
        here=link.here,
        there=link.there,
        within_host=link.within_host,
        connections=len(link.connections),
        sent_bytes=link.sent_bytes,
        received_bytes=link.received_bytes,
        reason=found.reason,
        text=_text(found),
        busy_ratio=use.busy_ratio,
        min_rtt_ns=use.min_rtt_ns,
        rtt_ns=use.rtt_ns,
        lost_ratio=use.lost_ratio,
        retransmitted=use.retrans,
        delivery_bytes_s=use.delivery_bytes_s,
        receiver_ratio=use.receiver_ratio,
    )


def _text(found: LinkLimit) -> str:
    use = found.use
    busy = f"data under way {format_ratio(use.busy_ratio)} of the time"
    trip = f"shortest round trip {format_ns(use.min_rtt_ns)}" if use.min_rtt_ns >= 0 else "round trip unknown"
    queue = format_ns(use.rtt_ns - use.min_rtt_ns)
    texts: dict[LinkReason, str] = {
        "rate": f"limited rate: the path carries {format_rate(8e-6 * use.delivery_bytes_s)} Mbit/s, "
        f"with a queue of {queue}; {busy}",
        "loss": f"losses: {format_ratio(use.lost_ratio)} of the bytes sent again ({use.retrans} segments); "
        f"{busy}, {trip}",
        "distance": f"distance: {trip}; {busy}",
        "peer-reads-slowly": "the other end reads slowly: its window was full "
        f"{format_ratio(use.receiver_ratio)} of the busy time; {busy}",
        "we-read-slowly": f"this end reads late: data lay unread in {format_ratio(use.unread_ratio)} "
        "of the looks; the network waits for this process",
        "send-buffer": f"small send buffer: full {format_ratio(use.buffer_ratio)} of the busy time; {busy}",
        "none": f"not held by the network: {busy}, {trip}",
    }
    return texts[found.reason]
