"""What the system call of a waiting thread waits for: the peer of a connection, a pipe, a time.

Source: /proc/PID/task/TID/syscall, /proc/PID/fd, /proc/PID/fdinfo and /proc/PID/net/tcp (proc(5)); poll(2), select(2).
Where ``syscall`` may not be read, the function of the kernel in which the thread waits says less, but enough to tell
locks, sleeps and sockets apart.
"""

from __future__ import annotations

import ipaddress
import os
import platform
import struct
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

from stepscope.native.cpython.python_memory import Memory
from stepscope.native.kernel import system_call_names

_FIRST_ARGUMENT = frozenset(
    {"read", "readv", "recvfrom", "recvmsg", "recvmmsg", "connect", "accept", "accept4", "write", "writev", "sendto"}
    | {"sendmsg", "flock", "fcntl", "fsync"}
)
"""Calls whose first argument is the descriptor waited for."""
_POLLS = frozenset({"poll", "ppoll"})
_SELECTS = frozenset({"select", "pselect6"})
_EPOLLS = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
_MAX_FILES = 64
_ARGUMENTS = 6
_INODE = 9
"""Column of the inode in /proc/PID/net/tcp."""
_POLL_BYTES = 8
_LISTENING = 0x0A
"""State TCP_LISTEN. Source: include/net/tcp_states.h."""
_BY_KERNEL_FUNCTION = (
    ("futex", "futex"),
    ("nanosleep", "clock_nanosleep"),
    ("ep_poll", "epoll_wait"),
    ("poll_schedule", "poll"),
    ("do_poll", "poll"),
    ("do_select", "select"),
    ("accept", "accept"),
    ("pipe_read", "read"),
    ("pipe_wait", "read"),
    ("anon_pipe_read", "read"),
    ("do_wait", "wait4"),
    ("sk_wait_data", "recvfrom"),
    ("skb_wait", "recvfrom"),
    ("unix_stream", "recvfrom"),
    ("wait_woken", "recvfrom"),
    ("inet_stream_connect", "connect"),
)


class WaitTarget(NamedTuple):
    """What a thread waits for."""

    call: str
    """Name of the system call; "" if it runs, or is not known."""
    on: str
    """Description of what it waits for; "" if it is not known, or no file."""


class Files:
    """Open files of one process, described on request."""

    def __init__(self, pid: int) -> None:
        """Describe files of ``pid``."""
        self._pid = pid
        self._sockets: dict[str, str] | None = None

    def described(self, number: int) -> str:
        """What a descriptor is; "" if it has gone or may not be read."""
        try:
            target = os.readlink(f"/proc/{self._pid}/fd/{number}")
        except OSError:
            return ""
        kind, _, inode = target.partition(":[")
        if kind == "socket":
            return self._socket(inode.rstrip("]"))
        return "pipe" if kind == "pipe" else target

    def _socket(self, inode: str) -> str:
        if self._sockets is None:
            self._sockets = {}
            for version in ("tcp", "tcp6"):
                self._sockets.update(_sockets(f"/proc/{self._pid}/net/{version}"))
        return self._sockets.get(inode, "socket")

    def watched_by(self, number: int) -> list[int]:
        """Descriptors that an epoll descriptor watches."""
        try:
            lines = Path(f"/proc/{self._pid}/fdinfo/{number}").read_text("ascii", "replace").splitlines()
        except OSError:
            return []
        return [int(line.split()[1]) for line in lines if line.startswith("tfd:")][:_MAX_FILES]


def of_thread(pid: int, tid: int, waits_in: str, files: Files) -> WaitTarget:
    """What a thread waits for. ``waits_in``: function of the kernel in which it does, "" if not known."""
    try:
        words = Path(f"/proc/{pid}/task/{tid}/syscall").read_text("ascii", "replace").split()
    except OSError:
        words = []
    if len(words) <= _ARGUMENTS or not words[0].isdigit():
        said = next((call for part, call in _BY_KERNEL_FUNCTION if part in waits_in), "")
        return WaitTarget(said, "")
    call = _names().get(int(words[0]), f"call {words[0]}")
    arguments = [int(word, 16) for word in words[1 : 1 + _ARGUMENTS]]
    return WaitTarget(call, _on(pid, call, arguments, files))


@cache
def _names() -> dict[int, str]:
    return system_call_names.names(platform.machine())


def _on(pid: int, call: str, arguments: list[int], files: Files) -> str:
    if call in _FIRST_ARGUMENT:
        numbers = [arguments[0] & 0xFFFFFFFF]
    elif call in _EPOLLS:
        numbers = files.watched_by(arguments[0] & 0xFFFFFFFF)
    elif call in _POLLS:
        numbers = _polled(pid, arguments[0], min(arguments[1], _MAX_FILES))
    elif call in _SELECTS:
        numbers = _selected(pid, arguments[1], min(arguments[0], 1024))
    else:
        return ""
    found = [text for text in map(files.described, numbers) if text]
    peers = [text for text in found if text.startswith("TCP ")]
    return (peers or found or [""])[0]


def _polled(pid: int, address: int, count: int) -> list[int]:
    with closing(Memory(pid)) as memory:
        data = memory.read(address, count * _POLL_BYTES)
    numbers = [int(row[0]) for row in struct.iter_unpack("<ihh", data[: len(data) // _POLL_BYTES * _POLL_BYTES])]
    return [number for number in numbers if number >= 0]


def _selected(pid: int, address: int, count: int) -> list[int]:
    with closing(Memory(pid)) as memory:
        bits = int.from_bytes(memory.read(address, (count + 63) // 64 * 8), "little") if address else 0
    return [number for number in range(count) if bits >> number & 1][:_MAX_FILES]


def _sockets(path: str) -> dict[str, str]:
    """Descriptions of the TCP sockets of a network namespace, by inode."""
    try:
        lines = Path(path).read_text("ascii", "replace").splitlines()[1:]
    except OSError:
        return {}
    rows = [words for words in map(str.split, lines) if len(words) > _INODE]
    listening = [words for words in rows if int(words[3], 16) == _LISTENING]
    served = {words[1].partition(":")[2] for words in listening}
    found = {}
    for words in rows:
        if words in listening:
            found[words[_INODE]] = f"listening TCP {_address(words[1])}"
        else:
            by_us = words[1].partition(":")[2] in served
            found[words[_INODE]] = f"{'served ' if by_us else ''}TCP {_address(words[2])}"
    return found


def _address(text: str) -> str:
    """An address of /proc/net/tcp: words of 32 bits in the host's order."""
    host, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return f"{mapped or address}:{int(port, 16)}"
