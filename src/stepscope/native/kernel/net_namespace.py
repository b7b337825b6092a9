"""Sockets in the network namespace of another process. Source: setns(2), network_namespaces(7)."""

from __future__ import annotations

import ctypes
import os
import socket
import threading

_CLONE_NEWNET = 0x40000000


def netlink_socket(protocol: int, pid: int = 0) -> socket.socket:
    """A netlink socket, in the network namespace of ``pid`` if it is not 0.

    A thread that ends afterwards enters the namespace; a socket stays in the one in which it was made.

    Raises:
        OSError: the namespace may not be entered (it takes CAP_SYS_ADMIN), or the process is gone.
    """
    if not pid:
        return _made(protocol)
    found: list[socket.socket | OSError] = []

    def inside() -> None:
        try:
            _enter(pid)
            found.append(_made(protocol))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=inside, name="stepscope-netns")
    thread.start()
    thread.join()
    made = found[0]
    if isinstance(made, OSError):
        raise made
    return made


def _made(protocol: int) -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)


def _enter(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, _CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(fd)
