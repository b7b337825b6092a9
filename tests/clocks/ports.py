"""Ports for collectors that exchange datagrams in one process."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """UDP ports of the loopback interface that nobody uses."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
