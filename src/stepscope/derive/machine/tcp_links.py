"""The job's TCP connections, by pairs of hosts: how much they carried, how long they were busy, what held them.

A connection's counters are totals since its beginning, so its share of a time is the growth between the samples there.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.machine.counters import DIFFERENCE
from stepscope.tables.network_tables import TcpTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64

_PREFIX = "tcp:"
MIN_UNREAD = 65_536
"""Unread bytes that a reader who keeps up does not leave."""


class ConnectionUse(Struct, frozen=True, kw_only=True):
    """One connection during some time. Ratios are of that time unless they say otherwise."""

    pid: int
    here: str
    there: str
    """Both ends, ``10.0.0.1:5000``."""
    seconds: float
    sent_bytes: int
    """Without what was sent again."""
    received_bytes: int
    retrans: int
    """Segments that were sent again."""
    lost_ratio: float
    """Bytes that were sent again over those that were sent, without what turned out to have arrived (DSACK)."""
    min_rtt_ns: int
    """Shortest round trip: the distance. -1: unknown."""
    rtt_ns: int
    """Median of the smoothed round trip."""
    busy_ratio: float
    """Time with data under way or waiting to be sent."""
    receiver_ratio: float
    """Share of the busy time in which the peer's window was full."""
    buffer_ratio: float
    """Share of the busy time in which the send buffer was full."""
    limited_ratio: float
    """Share of the samples with data under way in which the path, not the program, bounded the delivery rate."""
    busy_bytes_s: float
    """Bytes a second that arrived while it was busy."""
    delivery_bytes_s: float
    """Median of the rates at which the path delivered."""
    unread_ratio: float
    """Share of the samples with at least ``MIN_UNREAD`` bytes that this process has not read."""

    @property
    def hosts(self) -> tuple[str, str]:
        """Addresses of both ends."""
        return self.here.rpartition(":")[0], self.there.rpartition(":")[0]

    @property
    def moved_bytes(self) -> int:
        """Sent and received."""
        return self.sent_bytes + self.received_bytes


class LinkUse(Struct, frozen=True, kw_only=True):
    """All connections between this host and one other, the busiest first."""

    here: str
    there: str
    """Addresses."""
    connections: tuple[ConnectionUse, ...]

    @property
    def within_host(self) -> bool:
        """Whether both ends are on this host."""
        return self.here == self.there or is_loopback(self.there)

    @property
    def sent_bytes(self) -> int:
        """Of all connections."""
        return sum(one.sent_bytes for one in self.connections)

    @property
    def received_bytes(self) -> int:
        """Of all connections."""
        return sum(one.received_bytes for one in self.connections)


def of(session: Session, first_ns: int | None = None, last_ns: int | None = None) -> tuple[LinkUse, ...]:
    """Links that carried data between two times (all of the session without), those that carried most first."""
    table = session.peers.tcp
    if first_ns is not None:
        table = table.take(table.at_ns >= first_ns)
    if last_ns is not None:
        table = table.take(table.at_ns <= last_ns)
    by_hosts: dict[tuple[str, str], list[ConnectionUse]] = {}
    for use in _connections(session, table):
        if use.moved_bytes > 0:
            by_hosts.setdefault(use.hosts, []).append(use)
    links = [
        LinkUse(here=here, there=there, connections=tuple(sorted(uses, key=lambda use: -use.busy_ratio)))
        for (here, there), uses in by_hosts.items()
    ]
    return tuple(sorted(links, key=lambda link: -(link.sent_bytes + link.received_bytes)))


def by_connection(session: Session, table: TcpTable) -> dict[tuple[str, str], TcpTable]:
    """Rows of each connection by time, by its ends here and there. A restarted sidecar gives a new number."""
    if not len(table):
        return {}
    table = table.take(np.argsort(table.connection, kind="stable"))
    numbers, starts = np.unique(table.connection, return_index=True)
    parts: dict[tuple[str, str], list[TcpTable]] = {}
    for number, first, last in zip(numbers.tolist(), starts, [*starts[1:], len(table)], strict=True):
        text = session.resource_names[number] if 0 <= number < len(session.resource_names) else ""
        ends = ends_of(text)
        if ends is not None:
            parts.setdefault(ends, []).append(table.take(slice(first, last)))
    joined = {ends: TcpTable.concat(mine) for ends, mine in parts.items()}
    return {ends: rows.take(np.argsort(rows.at_ns, kind="stable")) for ends, rows in joined.items()}


def ends_of(text: str) -> tuple[str, str] | None:
    """Both ends of a connection, by its name among the resource names; None if it names none."""
    here, _, there = text.removeprefix(_PREFIX).partition(" ")
    return (here, there) if text.startswith(_PREFIX) and here and there else None


def _connections(session: Session, table: TcpTable) -> Iterable[ConnectionUse]:
    for (here, there), rows in by_connection(session, table).items():
        if len(rows) >= DIFFERENCE and rows.at_ns[-1] > rows.at_ns[0]:
            yield _use(here, there, rows)


def _use(here: str, there: str, rows: TcpTable) -> ConnectionUse:
    seconds = float(rows.at_ns[-1] - rows.at_ns[0]) / 1e9
    busy = _growth(rows.busy_ns)
    carried = _growth(rows.acked_bytes)
    sent, again, segments = _growth(rows.sent_bytes), _growth(rows.retrans_bytes), _growth(rows.retrans)
    useless = min(1.0, _growth(rows.dsack_dups) / segments) if segments else 0.0
    known = rows.min_rtt_ns[rows.min_rtt_ns >= 0]
    active = (rows.unacked_bytes > 0) & (rows.app_limited >= 0)
    rates = rows.delivery_bytes_s[rows.delivery_bytes_s > 0]
    return ConnectionUse(
        pid=int(rows.pid[-1]),
        here=here,
        there=there,
        seconds=seconds,
        sent_bytes=carried,
        received_bytes=_growth(rows.received_bytes),
        retrans=segments,
        lost_ratio=again * (1 - useless) / sent if sent else 0.0,
        min_rtt_ns=int(known.min()) if len(known) else -1,
        rtt_ns=int(np.median(rows.rtt_ns)),
        busy_ratio=min(1.0, busy / 1e9 / seconds),
        receiver_ratio=_growth(rows.rwnd_limited_ns) / busy if busy else 0.0,
        buffer_ratio=_growth(rows.sndbuf_limited_ns) / busy if busy else 0.0,
        limited_ratio=float((rows.app_limited[active] == 0).mean()) if active.any() else 0.0,
        busy_bytes_s=carried / (busy / 1e9) if busy else 0.0,
        delivery_bytes_s=float(np.median(rates)) if len(rates) else 0.0,
        unread_ratio=float((rows.unread_bytes >= MIN_UNREAD).mean()),
    )


def _growth(counter: I64) -> int:
    """Growth over all samples; a counter that falls, or that the kernel does not have, adds nothing."""
    return int(np.maximum(np.diff(counter), 0).sum())


def is_loopback(address: str) -> bool:
    """Whether an address is of the loopback device."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False
