"""Clocks of the hosts of several sessions, from the exchanges that their collectors recorded.

Times here are absolute: CLOCK_MONOTONIC of each host. A session's own time is that minus ``origin_monotonic_ns`` of its
manifest. Hosts are named by their clock domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.clocks import gates
from stepscope.derive.clocks.gates import FourStamps
from stepscope.derive.clocks.solve import Link, solve
from stepscope.model.session import clock_domain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.clocks.host_clock import ClockModel
    from stepscope.model.session.session import Session
    from stepscope.tables.network_tables import ClockProbeTable

_PREFIX = "clock:"
MAX_NS = 1 << 58
"""Uptime of nine years; larger stamps are of a damaged table."""
MAX_EXCHANGE_NS = 60_000_000_000
MAX_HOSTS = 256
"""Hosts of one session: a collector asks five."""


def domain(session: Session) -> str:
    """The clock domain of a session's host; empty if it is unknown."""
    host = session.manifest.host
    return clock_domain.key(host.boot_id, host.time_namespace)


def peers(session: Session) -> dict[str, str]:
    """Clock domains of the hosts that a session's collector exchanged stamps with, and HOST:PORT of each."""
    found = {}
    for number in np.unique(session.peers.clock_probes.peer).tolist():
        text = session.resource_names[number] if 0 <= number < len(session.resource_names) else ""
        if text.startswith(_PREFIX):
            there, _, place = text.removeprefix(_PREFIX).partition(" ")
            found[there] = place
    return found


def quads_of(session: Session) -> dict[str, FourStamps]:
    """Exchanges with each other host, by its clock domain; absolute times of both clocks."""
    origin = session.manifest.origin_monotonic_ns
    return {
        there: FourStamps(
            burst=table.burst,
            sent_ns=table.sent_ns + origin,
            received_ns=table.received_ns,
            answered_ns=table.answered_ns,
            returned_ns=table.returned_ns + origin,
        )
        for there, table in _by_peer(session).items()
    }


def wall_ahead(session: Session, there: str) -> int:
    """How much more CLOCK_REALTIME is ahead of CLOCK_MONOTONIC on another host than here, in nanoseconds (median)."""
    table = _by_peer(session)[there]
    return int(np.median(table.peer_real_ns - table.real_ns))


def model_of(sessions: Sequence[Session], reference: str = "", more: Sequence[Link] = ()) -> ClockModel | None:
    """The clocks of all hosts against one; None if no session says which host it is of.

    Args:
        sessions: of any number of hosts.
        reference: clock domain that the others are compared with; empty: that of the first session.
        more: further links, of collectives (``gates.of_collectives``), by clock domain and absolute times.
    """
    known = [session for session in sessions if domain(session)]
    if not known:
        return None
    reference = reference or domain(known[0])
    links = list(more)
    jumps: dict[str, list[float]] = {}
    for session in known:
        here, tables = domain(session), _by_peer(session)
        for there, quads in quads_of(session).items():
            table = tables[there]
            links.append(Link(a=here, b=there, gates=gates.of_probes(quads)))
            jumps.setdefault(here, []).extend(gates.jumps(quads.sent_ns, table.real_ns).tolist())
            jumps.setdefault(there, []).extend(gates.jumps(table.received_ns, table.peer_real_ns).tolist())
    return solve(links, reference, span=_span(known, reference), jumps=jumps)


def _by_peer(session: Session) -> dict[str, ClockProbeTable]:
    table = session.peers.clock_probes
    stamps = (table.sent_ns, table.returned_ns, table.received_ns, table.answered_ns, table.burst)
    good = np.ones(len(table), np.bool_)
    for stamp in (*stamps, table.real_ns // 16, table.peer_real_ns // 16):
        good &= np.abs(stamp) < MAX_NS
    table = table.take(good & (abs(session.manifest.origin_monotonic_ns) < MAX_NS))
    good = np.abs(table.returned_ns - table.sent_ns) < MAX_EXCHANGE_NS
    table = table.take(good & (np.abs(table.answered_ns - table.received_ns) < MAX_EXCHANGE_NS))
    table = table.take(np.argsort(table.sent_ns, kind="stable"))
    found: dict[str, list[int]] = {}
    for number in np.unique(table.peer).tolist():
        text = session.resource_names[number] if 0 <= number < len(session.resource_names) else ""
        if text.startswith(_PREFIX):
            found.setdefault(text.removeprefix(_PREFIX).partition(" ")[0], []).append(number)
    hosts = list(found.items())[:MAX_HOSTS]
    return {there: table.take(np.isin(table.peer, numbers)) for there, numbers in hosts}


def _span(sessions: Sequence[Session], reference: str) -> tuple[float, float]:
    """From the start to the end of the sessions of the reference; of its exchanges, if there is no such session."""
    own = [one.manifest for one in sessions if domain(one) == reference]
    if own:
        first = min(_bounded(one.origin_monotonic_ns) for one in own)
        last = max(_bounded(one.origin_monotonic_ns) + max(_bounded(one.ended_ns), 1) for one in own)
        return float(first), float(last)
    stamps = [
        table.received_ns
        for session in sessions
        for there, table in _by_peer(session).items()
        if there == reference and len(table)
    ]
    if not stamps:
        return 0.0, 1.0
    return float(min(one.min() for one in stamps)), float(max(one.max() for one in stamps))


def _bounded(at_ns: int) -> int:
    return max(-MAX_NS, min(MAX_NS, at_ns))
