"""Samples the TCP connections of measured processes: bytes received and sent, and unread bytes.

No file of /proc counts network bytes by process (/proc/PID/net/dev covers the whole namespace; ``rchar`` of
/proc/PID/io omits ``recv``). The kernel's socket diagnostics do, by connection: sock_diag(7), ``tcp_info`` of
linux/tcp.h. The inode behind a file descriptor links a connection to its process. Missed: connections that open and
close between two looks, UDP, kernel sockets (NFS), and every connection of another network namespace than ours.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from dataclasses import dataclass

_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_INFO = 2
_STATES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8
"""States: established, both FIN-WAIT (we have finished sending), CLOSE-WAIT (the peer has, data may be unread)."""
_MESSAGE = struct.Struct("=BBBB2s2s16s16sI8sIIIII")
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_BYTES_ACKED, _BYTES_RECEIVED = 120, 128
"""Offsets in ``tcp_info`` (Linux 4.1 and later)."""
MIN_BYTES = 100_000
"""Traffic since the last look below which connections are not examined: the kernel walks its whole table of
connections, 0.3 ms for each address family on a host with much memory."""
_EVERY = 3
_MANY, _SELDOM = 256, 30
"""Number of a host's sockets from which they are examined less often, and the interval: about 5 us each."""
_LOCAL4, _LOCAL6 = b"\x7f", bytes(15) + b"\x01"
_MAPPED = bytes(10) + b"\xff\xff"


@dataclass(slots=True)
class Traffic:
    """Totals of one process's connections that were seen."""

    received: int = 0
    sent: int = 0
    queued: int = -1
    """Unread bytes at the moment; -1: not examined."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One TCP connection that leaves the host."""

    inode: int
    queued: int
    sent: int
    received: int


class SocketSampler:
    """Follows the connections of the measured processes."""

    def __init__(self) -> None:
        """Begin; nothing is open before the first look."""
        self._netlink: socket.socket | None = None
        self._usable = True
        self._owner: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}
        self._traffic: dict[int, Traffic] = {}
        self._age = _EVERY
        self._seen = 0
        self._moved = 0

    def sample(self, pids: frozenset[int], moved: int) -> dict[int, Traffic]:
        """Totals by process; empty if the kernel does not report them.

        Args:
            pids: the measured processes.
            moved: bytes that the network has moved so far, in and out.
        """
        if not self._usable:
            return {}
        self._age += 1
        due = self._age >= (_EVERY if self._seen <= _MANY else _SELDOM) and moved - self._moved >= MIN_BYTES
        for traffic in self._traffic.values():
            traffic.queued = -1
        if due:
            try:
                self._look(pids)
            except (OSError, struct.error) as error:
                self._usable = isinstance(error, OSError) and error.errno in (errno.EINTR, errno.ENOBUFS)
                return {}
            self._age, self._moved = 0, moved
        for pid in pids:
            self._traffic.setdefault(pid, Traffic())
        return {pid: self._traffic[pid] for pid in pids}

    def close(self) -> None:
        """Close the socket to the kernel."""
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None

    def _look(self, pids: frozenset[int]) -> None:
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
        for pid in pids:
            self._traffic.setdefault(pid, Traffic()).queued = 0
        for connection in found:
            pid = self._owner[connection.inode]
            if pid in pids:
                traffic = self._traffic[pid]
                received, sent = self._last.get(connection.inode, (0, 0))
                traffic.received += max(0, connection.received - received)
                traffic.sent += max(0, connection.sent - sent)
                traffic.queued += connection.queued
                self._last[connection.inode] = (connection.received, connection.sent)

    def _connections(self) -> list[Connection]:
        if self._netlink is None:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
            self._netlink.settimeout(0.2)
        found: list[Connection] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            ask = struct.pack("=BBBBI48s", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _STATES, b"")
            self._netlink.send(
                _HEADER.pack(_HEADER.size + len(ask), _SOCK_DIAG_BY_FAMILY, _REQUEST | _DUMP, 1, 0) + ask
            )
            more = True
            while more:
                more = _parse(self._netlink.recv(65_536), found)
        return found


def _parse(data: bytes, found: list[Connection]) -> bool:
    """Add the connections in one answer; return whether more answers follow.

    Raises:
        OSError: the kernel refused.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if kind == _DONE or length < _HEADER.size:
            return False
        if kind == _ERROR:
            code = -struct.unpack_from("=i", data, at + _HEADER.size)[0]
            raise OSError(code, "sock_diag")
        connection = _connection(data, at + _HEADER.size, at + length)
        if connection is not None:
            found.append(connection)
        at += (length + 3) & ~3
    return True


def _connection(data: bytes, start: int, end: int) -> Connection | None:
    """One message; None for a connection within the host."""
    (_, _, _, _, _, _, source, target, _, _, _, queued, _, _, inode) = _MESSAGE.unpack_from(data, start)
    if is_local(source, target):
        return None
    at = start + _MESSAGE.size
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return None
        if kind == _INFO and length >= _ATTRIBUTE.size + _BYTES_RECEIVED + 8:
            sent, received = struct.unpack_from("=QQ", data, at + _ATTRIBUTE.size + _BYTES_ACKED)
            return Connection(inode, queued, sent, received)
        at += (length + 3) & ~3
    return None


def is_local(source: bytes, target: bytes) -> bool:
    """Whether both ends are on this host: a loopback address, or the same address twice."""
    tail = target[12:16] if target.startswith(_MAPPED) else target[:4]
    plain4 = target[4:] == bytes(12) or target.startswith(_MAPPED)
    return target in (source, _LOCAL6) or (plain4 and tail[:1] == _LOCAL4)


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
