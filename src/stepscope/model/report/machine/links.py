"""Links between hosts that the job used, as the kernel's counters of its TCP connections show them."""

from __future__ import annotations

from typing import Literal

from stepscope.tables.structs import Struct

LinkReason = Literal["rate", "peer-reads-slowly", "we-read-slowly", "loss", "distance", "send-buffer", "none"]


class NetworkLink(Struct, frozen=True, kw_only=True):
    """The connections of the measured processes with one other host, during the steady steps."""

    here: str
    """Address of this host."""
    there: str
    """Address of the other; the same host's if the connections do not leave it."""
    within_host: bool = False
    connections: int
    sent_bytes: int
    """Acknowledged."""
    received_bytes: int
    reason: LinkReason
    """What holds it. rate: the path carries no more. peer-reads-slowly, we-read-slowly: the reader's window, or buffer,
    is full. loss: segments are lost. distance: one round trip is a large share of a step. none: the network does not
    hold the steps."""
    text: str
    """The same in a sentence with its numbers."""
    busy_ratio: float
    """Share of the time with data under way; of the connection that shows the reason, like all that follows."""
    min_rtt_ns: int
    """Shortest round trip; -1 unknown."""
    rtt_ns: int
    lost_ratio: float
    """Share of the bytes that were lost and sent again."""
    retransmitted: int
    """Segments sent again."""
    delivery_bytes_s: float
    """Rate at which the path delivered, median."""
    receiver_ratio: float
    """Share of the busy time in which the peer's window was full."""
