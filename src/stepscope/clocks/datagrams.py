"""One UDP socket of this host, with the time at which each datagram arrived.

The kernel stamps arrivals (SO_TIMESTAMPNS, socket(7)), so it does not matter when this process is scheduled. Its stamps
are of CLOCK_REALTIME; they are moved to CLOCK_MONOTONIC by both clocks read at once.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time

_TIMESTAMPNS = 35
"""SO_TIMESTAMPNS and SCM_TIMESTAMPNS of asm-generic/socket.h; Python has no name for it."""
_STAMP = struct.Struct("@ll")
_READINGS = 3
_CLOSE_NS = 2_000
"""Reading both clocks usually takes less; an interrupted reading is repeated."""
_OLD_NS = 1_000_000_000
"""A stamp further from now than this is not used: the wall clock was set in between."""

Address = tuple[str | int | bytes, ...]
"""As the socket module has it: host, port, and two numbers more for IPv6."""


class Datagrams:
    """A bound socket."""

    def __init__(self, bound: socket.socket) -> None:
        """Take over a bound UDP socket."""
        self._socket = bound
        self._socket.setblocking(False)
        with contextlib.suppress(OSError):  # else the time of reading counts, which is later
            self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)

    @property
    def family(self) -> int:
        """Address family."""
        return self._socket.family

    def fileno(self) -> int:
        """For poll."""
        return self._socket.fileno()

    def send(self, data: bytes, to: Address) -> None:
        """Send, if the kernel takes it; a datagram may always be lost."""
        try:
            self._socket.sendto(data, to)
        except OSError:  # no route, or the buffer is full: as if it was lost on the way
            return

    def receive(self, most: int) -> tuple[bytes, Address, int, int] | None:
        """A waiting datagram: at most so many of its bytes, sender, arrival by CLOCK_MONOTONIC, REALTIME minus
        MONOTONIC; None: none waits.
        """
        try:
            data, control, _, sender = self._socket.recvmsg(most, socket.CMSG_SPACE(_STAMP.size))
        except OSError:  # nothing there, or an ICMP error for what was sent before
            return None
        now_ns, ahead_ns = both_clocks()
        arrived_ns = now_ns
        for level, kind, stamp in control:
            if level == socket.SOL_SOCKET and kind == _TIMESTAMPNS and len(stamp) >= _STAMP.size:
                seconds, rest = _STAMP.unpack_from(stamp)
                stamped = seconds * 1_000_000_000 + rest - ahead_ns
                arrived_ns = stamped if 0 <= now_ns - stamped < _OLD_NS else now_ns
        return data, sender, arrived_ns, ahead_ns

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def both_clocks() -> tuple[int, int]:
    """CLOCK_MONOTONIC now, and CLOCK_REALTIME minus it. Nanoseconds."""
    best = before = after = real = 0
    for attempt in range(_READINGS):
        first, middle, last = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if attempt == 0 or last - first < best:
            best, before, real, after = last - first, first, middle, last
        if best < _CLOSE_NS:
            break
    return after, real - (before + after) // 2


def bind(hosts: list[tuple[str, int]]) -> tuple[Datagrams, int] | None:
    """A socket on the first of ``hosts`` that is a free address of this host, and its place; None: there is none."""
    for place, (host, port) in enumerate(hosts):
        for family, address in _addresses(host, port, socket.AF_UNSPEC):
            bound = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            try:
                bound.bind(address)
            except OSError:  # another host's, or another collector of this host has it
                bound.close()
                continue
            return Datagrams(bound), place
    return None


def address_of(host: str, port: int, family: int) -> Address | None:
    """The address to send to; None if the name is not known in this family."""
    found = _addresses(host, port, family)
    return found[0][1] if found else None


def _addresses(host: str, port: int, family: int) -> list[tuple[int, Address]]:
    try:
        return [(found[0], found[4]) for found in socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)]
    except OSError:
        return []
