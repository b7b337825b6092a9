"""Tables about the network between hosts: exchanges that compare clocks, the job's TCP connections, their packets."""

from __future__ import annotations

from stepscope.tables.records import I64, Table


class ClockProbeTable(Table, frozen=True, kw_only=True):
    """Exchanges of four stamps with collectors of other hosts, in bursts. int64[exchange]. Since 0.1.

    ``sent_ns`` and ``returned_ns`` are of this host's CLOCK_MONOTONIC since session start, ``received_ns`` and
    ``answered_ns`` of the other's, since its own zero.
    """

    sent_ns: I64
    peer: I64
    """Index into the session's resource names: ``clock:DOMAIN HOST:PORT``, the domain as in
    ``model.session.clock_domain``."""
    burst: I64
    """Number of the burst, by time."""
    received_ns: I64
    answered_ns: I64
    returned_ns: I64
    real_ns: I64
    """CLOCK_REALTIME minus CLOCK_MONOTONIC here: it jumps when a clock is set or the host was suspended."""
    peer_real_ns: I64
    """The same there."""


class TcpTable(Table, frozen=True, kw_only=True):
    """TCP connections of the measured processes, about once a second (ten times during captures) while they carry data.

    int64[sample]; counters are totals since the connection began; -1 if the kernel does not have it. Since 0.1.
    Source: linux/tcp.h, ``tcp_info``, by sock_diag(7).
    """

    at_ns: I64
    connection: I64
    """Index into the session's resource names: ``tcp:HERE:PORT THERE:PORT``."""
    pid: I64
    unread_bytes: I64
    """Arrived, and not yet read by the process (Recv-Q)."""
    unacked_bytes: I64
    """Written by the process, and not yet acknowledged by the peer (Send-Q)."""
    notsent_bytes: I64
    """Part of it that has not been sent at all."""
    rtt_ns: I64
    """Smoothed; delayed acknowledgements and busy CPUs inflate it."""
    rttvar_ns: I64
    min_rtt_ns: I64
    """Least of the last five minutes: the distance."""
    cwnd: I64
    """Congestion window in segments."""
    sent_bytes: I64
    """Including what was sent again."""
    acked_bytes: I64
    received_bytes: I64
    retrans_bytes: I64
    """Bytes that were sent again."""
    retrans: I64
    """The same in segments."""
    delivered: I64
    """Segments that arrived."""
    delivery_bytes_s: I64
    """Rate at which the path delivered most recently."""
    app_limited: I64
    """Flag 1: that rate was bounded by what the process had to send."""
    busy_ns: I64
    """Time with data under way or waiting to be sent."""
    rwnd_limited_ns: I64
    """Part of it in which the peer's window was full: its reader is slow."""
    sndbuf_limited_ns: I64
    """Part of it in which the send buffer was full."""
    dsack_dups: I64
    """Segments that were sent again for nothing."""
    reordered: I64
    out_of_order: I64
    """Segments that arrived out of order."""


class PacketTable(Table, frozen=True, kw_only=True):
    """Segments of the job's TCP connections that were sent again, and packets of them that the host dropped.

    int64[event]. Since 0.1. Source: the tracepoints tcp_retransmit_skb and kfree_skb.
    """

    at_ns: I64
    connection: I64
    """Index into the session's resource names: ``tcp:HERE:PORT THERE:PORT``."""
    reason: I64
    """-1: it was sent again. Else it was dropped, and this indexes the resource names: ``drop:REASON``."""
    arriving: I64
    """Flag 1: it was dropped on arrival; 0: when it was sent."""
