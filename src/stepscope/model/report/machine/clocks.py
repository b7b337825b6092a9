"""How the clocks of the job's other hosts stand against this one's."""

from __future__ import annotations

from stepscope.tables.structs import Struct


class HostClockOffset(Struct, frozen=True, kw_only=True):
    """The clock of another host, in the middle of the exchanges with it (docs/clocks.md)."""

    host: str
    """HOST:PORT of its collector."""
    domain: str
    """Clock domain: the same for sessions of that host."""
    offset_ns: int
    """Its CLOCK_MONOTONIC minus this host's, both since their own zero."""
    wall_offset_ns: int
    """Its CLOCK_REALTIME minus this host's: what a time service leaves."""
    bound_ns: int
    """Largest possible error of both, whatever the network did."""
    drift_ratio: float
    """Its rate minus this host's: 1e-6 is a microsecond in a second; 0 where fewer than two bursts were exchanged."""
    round_trip_ns: int
    """Shortest round trip of the exchanges."""
    exchanges: int
