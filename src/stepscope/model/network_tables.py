"""Tables about the network between hosts: exchanges that compare clocks, and the job's TCP connections."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.model.records import I64, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockProbeTable(Table):
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
