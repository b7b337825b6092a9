"""What a process's descriptors stand for: files, peers, pipes.

Source: proc(5), /proc/PID/fd and /proc/PID/net/tcp (Documentation/networking/proc_net_tcp.rst).
"""

from __future__ import annotations

import ipaddress
import os
import struct
from pathlib import Path

_SOCKET, _ANONYMOUS = "socket:[", "anon_inode:"
_REMOTE, _INODE = 2, 9
"""Columns of /proc/PID/net/tcp."""
_WORD = struct.Struct("=I")


class Descriptors:
    """The open descriptors of a process at the moment that they are asked about."""

    def __init__(self, pid: int) -> None:
        """Ask about a process."""
        self._folder = Path(f"/proc/{pid}/fd")
        self._network = Path(f"/proc/{pid}/net")
        self._peers: dict[str, str] | None = None

    def target(self, number: int) -> str:
        """A path, ``10.0.0.7:6379``, ``pipe``, ``socket``, ``eventpoll``; "closed" if it is no more."""
        try:
            text = os.readlink(self._folder / str(number))
        except OSError:
            return "closed"
        if text.startswith(_SOCKET):
            return self._peer(text[len(_SOCKET) : -1])
        if text.startswith(_ANONYMOUS):
            return text[len(_ANONYMOUS) :].strip("[]")
        return text if text.startswith("/") else text.partition(":")[0]

    def _peer(self, inode: str) -> str:
        if self._peers is None:
            self._peers = {i: peer for family in ("tcp", "tcp6") for i, peer in self._rows(family)}
        return self._peers.get(inode, "socket")

    def _rows(self, family: str) -> list[tuple[str, str]]:
        try:
            lines = (self._network / family).read_text("ascii").splitlines()[1:]
        except OSError:
            return []
        rows = [line.split() for line in lines]
        return [(row[_INODE], address(row[_REMOTE])) for row in rows if len(row) > _INODE]


def address(text: str) -> str:
    """``0700000A:18EB`` as ``10.0.0.7:6379``: words of the machine's order, then the port."""
    words, _, port = text.partition(":")
    packed = b"".join(_WORD.pack(int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    host = ipaddress.ip_address(packed)
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    shown = f"[{host}]" if isinstance(host, ipaddress.IPv6Address) and mapped is None else str(mapped or host)
    return f"{shown}:{int(port, 16)}"
