"""Answers of the kernel's socket diagnostics: TCP connections with their ``tcp_info``.

Supported: SOCK_DIAG_BY_FAMILY for IPv4 and IPv6 (sock_diag(7), linux/inet_diag.h, linux/tcp.h), on a machine of either
byte order. Kernels append fields to ``tcp_info``; what an older one does not have is -1.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import NamedTuple

SOCK_DIAG = 4
"""The netlink protocol."""
_BY_FAMILY = 20
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_INFO = 2
_STATES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8
"""States: established, both FIN-WAIT (we have finished sending), CLOSE-WAIT (the peer has, data may be unread)."""
_MESSAGE = struct.Struct("=B3x2s2s16s16s16xII4xI")
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_TCP = 6
_LOCAL4, _LOCAL6 = b"\x7f", bytes(15) + b"\x01"
_MAPPED = bytes(10) + b"\xff\xff"
_FAMILY6 = 10


class TcpInfo(NamedTuple):
    """``tcp_info``, in the kernel's units; -1: the kernel does not have it. Counters are totals of the connection."""

    app_limited: int
    """1: the last delivery rate was bounded by what the program had to send."""
    rtt_us: int
    """Smoothed; delayed acknowledgements and a busy CPU inflate it."""
    rttvar_us: int
    cwnd: int
    """Segments."""
    retrans: int
    """Segments."""
    acked_bytes: int
    received_bytes: int
    notsent_bytes: int
    min_rtt_us: int
    """Least of the last five minutes (tcp_min_rtt_wlen)."""
    delivery_bytes_s: int
    busy_us: int
    """Time with data under way or waiting."""
    rwnd_limited_us: int
    """Part of it in which the receiver's window was full."""
    sndbuf_limited_us: int
    """Part of it in which the send buffer was full."""
    delivered: int
    """Segments."""
    sent_bytes: int
    retrans_bytes: int
    dsack_dups: int
    reord_seen: int
    rcv_ooopack: int


_LAYOUT = (
    ("B", 7),
    ("I", 68),
    ("I", 72),
    ("I", 80),
    ("I", 100),
    ("Q", 120),
    ("Q", 128),
    ("I", 144),
    ("I", 148),
    ("Q", 160),
    ("Q", 168),
    ("Q", 176),
    ("Q", 184),
    ("I", 192),
    ("Q", 200),
    ("Q", 208),
    ("I", 216),
    ("I", 220),
    ("I", 224),
)
"""Kind and offset of each field of ``TcpInfo`` in ``tcp_info``."""


def _whole() -> struct.Struct:
    """All of the fields at once, for kernels that have them (Linux 4.19 and later)."""
    text, at = "=", 0
    for kind, offset in _LAYOUT:
        text += f"{offset - at}x{kind}"
        at = offset + struct.calcsize(f"={kind}")
    return struct.Struct(text)


_WHOLE = _whole()
_FIELDS = [(struct.Struct(f"={kind}"), offset) for kind, offset in _LAYOUT]
_MIN_RTT = TcpInfo._fields.index("min_rtt_us")
_UNKNOWN_MIN_RTT = 0xFFFFFFFF


class Connection(NamedTuple):
    """One TCP connection. Addresses are 16 bytes as the kernel has them, IPv4 in the first four."""

    inode: int
    family: int
    source: bytes
    source_port: int
    target: bytes
    target_port: int
    unread: int
    """Bytes that have arrived and that the program has not read (Recv-Q)."""
    unacked: int
    """Bytes that the program has written and that are not acknowledged (Send-Q)."""
    info: TcpInfo | None

    @property
    def text(self) -> str:
        """Both ends: ``10.0.0.1:5000 10.0.0.2:6000``."""
        return ends(self.family, self.source, self.source_port, self.target, self.target_port)


def ends(family: int, source: bytes, source_port: int, target: bytes, target_port: int) -> str:
    """Both ends of a connection in words. Addresses of IPv4 may have four bytes."""
    return f"{_end(family, source, source_port)} {_end(family, target, target_port)}"


def request(family: int) -> bytes:
    """The question for all connections of a family (AF_INET or AF_INET6)."""
    ask = struct.pack("=BBBBI48s", family, _TCP, 1 << (_INFO - 1), 0, _STATES, b"")
    return _HEADER.pack(_HEADER.size + len(ask), _BY_FAMILY, _REQUEST | _DUMP, 1, 0) + ask


def parse(data: bytes, found: list[Connection]) -> bool:
    """Add the connections of one answer; return whether more answers follow.

    Raises:
        OSError: the kernel refused.
        struct.error: it is cut short.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if kind == _DONE or length < _HEADER.size:
            return False
        if kind == _ERROR:
            code = -struct.unpack_from("=i", data, at + _HEADER.size)[0]
            raise OSError(code, "sock_diag")
        found.append(_connection(data, at + _HEADER.size, min(at + length, len(data))))
        at += (length + 3) & ~3
    return True


def _connection(data: bytes, start: int, end: int) -> Connection:
    family, sport, dport, source, target, unread, unacked, inode = _MESSAGE.unpack_from(data, start)
    info = None
    at = start + _MESSAGE.size
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        if kind == _INFO:
            info = _info(data, at + _ATTRIBUTE.size, min(length - _ATTRIBUTE.size, end - at - _ATTRIBUTE.size))
        at += (length + 3) & ~3
    ports = int.from_bytes(sport, "big"), int.from_bytes(dport, "big")
    return Connection(inode, family, source, ports[0], target, ports[1], unread, unacked, info)


def _info(data: bytes, start: int, length: int) -> TcpInfo:
    if length >= _WHOLE.size:
        values = list(_WHOLE.unpack_from(data, start))
    else:
        values = [
            part.unpack_from(data, start + offset)[0] if offset + part.size <= length else -1
            for part, offset in _FIELDS
        ]
    if values[0] >= 0:
        values[0] &= 1
    if values[_MIN_RTT] == _UNKNOWN_MIN_RTT:
        values[_MIN_RTT] = -1
    return TcpInfo._make(values)


def is_local(source: bytes, target: bytes) -> bool:
    """Whether both ends are on this host: a loopback address, or the same address twice."""
    tail = target[12:16] if target.startswith(_MAPPED) else target[:4]
    plain4 = target[4:] == bytes(12) or target.startswith(_MAPPED)
    return target in (source, _LOCAL6) or (plain4 and tail[:1] == _LOCAL4)


def _end(family: int, address: bytes, port: int) -> str:
    if family != _FAMILY6:
        return f"{ipaddress.IPv4Address(address[:4])}:{port}"
    if address.startswith(_MAPPED):
        return f"{ipaddress.IPv4Address(address[12:])}:{port}"
    return f"[{ipaddress.IPv6Address(address)}]:{port}"
