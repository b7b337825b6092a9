"""Samples the TCP connections of measured processes: bytes, unread bytes, and what the kernel knows of the path.

No file of /proc counts network bytes by process (/proc/PID/net/dev covers the whole namespace; ``rchar`` of
/proc/PID/io omits ``recv``). The kernel's socket diagnostics do, by connection. The inode behind a file descriptor
links a connection to its process. Missed: connections that open and close between two looks, UDP, kernel sockets (NFS),
RDMA, and the job's connections in a network namespace that may not be entered.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.collector.samplers.base import Rows
from stepscope.native.kernel.net_namespace import netlink_socket
from stepscope.native.proc import sock_diag
from stepscope.tables.network_tables import TcpTable

if TYPE_CHECKING:
    from stepscope.collector.samplers.names import NameNumbers
    from stepscope.native.proc.sock_diag import Connection

MIN_BYTES = 100_000
"""Traffic since the last look below which connections are not examined: the kernel walks its whole table of
connections, 0.3 ms for each address family on a host with much memory."""
_MANY, _SELDOM = 256, 30
"""Number of a host's sockets from which they are examined less often, and the interval: about 5 us each."""
MAX_ROWS = 64
"""Connections of the job that a look stores, those that moved most."""
MAX_NAMES = 2_000
"""Connections that a session names; a job may make endless ones."""


class Traffic(Struct):
    """Totals of one process's connections that leave the host and were seen."""

    received: int = 0
    sent: int = 0
    queued: int = -1
    """Unread bytes at the moment; -1: not examined."""


class SocketSampler:
    """Follows the connections of the measured processes."""

    def __init__(self, origin_ns: int, names: NameNumbers) -> None:
        """Times in rows count from ``origin_ns``; connections are named in ``names``. Nothing is open before a look."""
        self.rows = Rows(TcpTable)
        self._origin_ns = origin_ns
        self._names = names
        self._named: dict[str, int] = {}
        self._numbers: dict[int, int] = {}
        self.unnamed = 0
        """Rows that were not stored, because the session names enough connections."""
        self._netlink: socket.socket | None = None
        self._namespace = 0
        self._usable = True
        self._owner: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}
        self._traffic: dict[int, Traffic] = {}
        self._age = _SELDOM
        self._seen = 0
        self._moved = 0

    @property
    def carrying(self) -> bool:
        """Whether the last look found connections of the job that moved data."""
        return bool(self._last) and self._usable

    def sample(self, now_ns: int, pids: frozenset[int], moved: int, namespace: int = 0) -> dict[int, Traffic]:
        """Totals by process; empty if the kernel does not report them.

        Args:
            now_ns: CLOCK_MONOTONIC.
            pids: the measured processes.
            moved: bytes that the network has moved so far, in and out, loopback included.
            namespace: a process in whose network namespace the job is; 0: it is in ours.
        """
        if namespace != self._namespace:
            self.close()
            self._namespace, self._usable = namespace, True
        if not self._usable:
            return {}
        self._age += 1
        due = self._age >= (1 if self._seen <= _MANY else _SELDOM) and moved - self._moved >= MIN_BYTES
        for traffic in self._traffic.values():
            traffic.queued = -1
        if due:
            self._moved = moved
            if not self.look(now_ns, pids):
                return {}
        for pid in pids:
            self._traffic.setdefault(pid, Traffic())
        return {pid: self._traffic[pid] for pid in pids}

    def number_of(self, ends: str) -> int:
        """The number of a connection that was named, by its ends; -1: there is none."""
        return self._named.get(f"tcp:{ends}", -1)

    def look(self, now_ns: int, pids: frozenset[int]) -> bool:
        """Examine all connections now; return whether the kernel reports them."""
        try:
            self._look(now_ns, pids)
        except (OSError, struct.error) as error:
            self._usable = isinstance(error, OSError) and error.errno in (errno.EINTR, errno.ENOBUFS)
            return False
        self._age = 0
        return True

    def close(self) -> None:
        """Close the socket to the kernel."""
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None

    def _look(self, now_ns: int, pids: frozenset[int]) -> None:
        found = self._connections()
        self._seen = len(found)
        present = {c.inode for c in found}
        if any(inode not in self._owner for inode in present):
            mine = {inode: pid for pid in pids for inode in socket_inodes(pid)}
            for inode in present - self._owner.keys():
                self._owner[inode] = mine.get(inode, 0)
        for inode in self._owner.keys() - present:
            del self._owner[inode]
            self._last.pop(inode, None)
            self._numbers.pop(inode, None)
        for pid in pids:
            self._traffic.setdefault(pid, Traffic()).queued = 0
        rows: list[tuple[int, int, Connection]] = []
        for connection in found:
            pid, info = self._owner[connection.inode], connection.info
            if pid not in pids or info is None:
                continue
            received, sent = self._last.get(connection.inode, (0, 0))
            came, went = max(0, info.received_bytes - received), max(0, info.acked_bytes - sent)
            self._last[connection.inode] = (info.received_bytes, info.acked_bytes)
            if not is_local(connection.source, connection.target):
                traffic = self._traffic[pid]
                traffic.received += came
                traffic.sent += went
                traffic.queued += connection.unread
            if came or went or connection.unread or connection.unacked:
                rows.append((came + went, pid, connection))
        rows.sort(key=lambda row: -row[0])
        for _, pid, connection in rows[:MAX_ROWS]:
            self._store(now_ns, pid, connection)

    def _store(self, now_ns: int, pid: int, connection: Connection) -> None:
        info = connection.info
        number = self._number(connection)
        if info is None or number < 0:
            return
        self.rows.add(
            now_ns - self._origin_ns,
            number,
            pid,
            connection.unread,
            connection.unacked,
            info.notsent_bytes,
            _ns(info.rtt_us),
            _ns(info.rttvar_us),
            _ns(info.min_rtt_us),
            info.cwnd,
            info.sent_bytes,
            info.acked_bytes,
            info.received_bytes,
            info.retrans_bytes,
            info.retrans,
            info.delivered,
            info.delivery_bytes_s,
            info.app_limited,
            _ns(info.busy_us),
            _ns(info.rwnd_limited_us),
            _ns(info.sndbuf_limited_us),
            info.dsack_dups,
            info.reord_seen,
            info.rcv_ooopack,
        )

    def _number(self, connection: Connection) -> int:
        """The number of a connection's name; -1 if there are enough."""
        number = self._numbers.get(connection.inode)
        if number is None:
            name = f"tcp:{connection.text}"
            if name not in self._named and len(self._named) >= MAX_NAMES:
                self.unnamed += 1
                return -1
            number = self._numbers[connection.inode] = self._named[name] = self._names.number(name)
        return number

    def _connections(self) -> list[Connection]:
        if self._netlink is None:
            self._netlink = netlink_socket(sock_diag.SOCK_DIAG, self._namespace)
            self._netlink.settimeout(0.2)
        found: list[Connection] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            self._netlink.send(sock_diag.request(family))
            more = True
            while more:
                more = sock_diag.parse(self._netlink.recv(65_536), found)
        return found


def _ns(microseconds: int) -> int:
    return microseconds * 1_000 if microseconds >= 0 else -1


def is_local(source: bytes, target: bytes) -> bool:
    """Whether both ends of a connection are on this host."""
    return sock_diag.is_local(source, target)


def socket_inodes(pid: int) -> list[int]:
    """Inodes of a process's open sockets; none for a process that may not be examined."""
    folder = f"/proc/{pid}/fd"
    inodes = []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.append(int(target[8:-1]))
    return inodes
