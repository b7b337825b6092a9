"""What a blocked thread waits for: the system call that a look found, with the file, peer or process behind it.

Input is the text of ``/proc/self/task/TID/syscall`` (proc(5)) that ``agent.sampling.lock_watch`` has read. Each
distinct wait is one line of the log; samples name it through their stack. A descriptor is resolved at most once a
second, and everything is read while the interpreter lock is kept: the thread must not run Python between the look and
its stack.

Memory of the job is read through ``/proc/self/mem``: an address that is gone by then gives an error, no crash.
"""

from __future__ import annotations

import ctypes
import os

from stepscope.agent.sampling import syscalls
from stepscope.wire.kinds import LockState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.state import AgentState

MOST = 500
"""Distinct waits of which the size is known; with twice as many, nothing new is named."""
_AGAIN_NS = 1_000_000_000
"""Interval after which a descriptor is resolved again: it may have been closed and opened as something else."""
_TEXT_BYTES = 4096
_ADDRESS_BYTES = 128
"""Size of struct sockaddr_storage."""
_UNIX, _INET, _INET6 = 1, 2, 10
"""Families of addresses. Source: socket(2), asm-generic values."""
_EPHEMERAL = 32768
"""Lowest port that Linux gives to clients, unless set otherwise. Source: ip(7), ip_local_port_range."""
_INT_BYTES = 4
_RUNS, _WAITS = int(LockState.RUNS), int(LockState.WAITS)


class WaitTable:
    """Ids of waits; used by the agent's thread only."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._names = syscalls.names(os.uname().machine)
        self._ids: dict[tuple[str, str, str, int, bool], int] = {}
        self._targets: dict[int, tuple[int, str, str]] = {}
        """Time of the next look, kind and text by descriptor."""
        self._buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self._libc: Optional[ctypes.PyDLL] = None
        self.counts = False
        """Whether the last wait was in a call of which the thread's counters say more: any but one for a lock."""

    def id_of(self, lock: int, text: bytes, now: int) -> int:
        """The id of what a look found; 0 if nothing is known of it.

        Args:
            lock: the ``LockState`` that the look found.
            text: what the kernel said.
            now: monotonic ns.
        """
        self.counts = False
        if lock == _RUNS:
            return self._id("running")
        if lock == _WAITS:
            return self._id("gil")
        words = text.split()
        if words and words[0] == syscalls.ELSEWHERE:
            return self._id("page-fault")
        if len(words) < syscalls.WORDS:
            return 0
        call = self._names.get(int(words[0]), "syscall %d" % int(words[0]))
        self.counts = call != "futex"
        return self._of_call(call, [int(word, 16) for word in words[1:7]], now)

    def _of_call(self, call: str, args: list[int], now: int) -> int:
        shape = syscalls.SHAPES.get(call)
        if shape is None:
            return self._id(call)
        if call in ("select", "pselect6") and not args[0]:
            return self._id("sleep")
        if call in ("wait4", "waitid"):
            kind, target = "process", self._process(args[call == "waitid"])
        elif call in ("poll", "ppoll"):
            kind, target = self._polled(args, now)
        else:
            kind, target = self._target(args[shape.descriptor], now) if shape.descriptor >= 0 else ("", "")
        size = args[shape.size] if shape.size >= 0 and len(self._ids) < MOST else 0
        limit = args[shape.timeout] if shape.timeout >= 0 else 0
        timed = limit > 0 and (call in syscalls.ADDRESSES or limit & 0xFFFFFFFF < syscalls.FOREVER)
        return self._id(call, kind, target, size, timed=timed)

    def _id(self, call: str, kind: str = "", target: str = "", size: int = 0, *, timed: bool = False) -> int:
        key = (call, kind, target, size, timed)
        number = self._ids.get(key, 0)
        if not number and len(self._ids) < 2 * MOST:
            number = self._ids[key] = self._state.new_id("wait")
            line: dict[str, object] = {"t": "wait", "at": self._state.now(), "id": number, "call": call}
            line.update(kind=kind, target=target, bytes=size, timed=timed)
            self._state.log(line)
        return number

    def _polled(self, args: list[int], now: int) -> tuple[str, str]:
        """What a poll waits for, if that is one descriptor."""
        data = self._memory(args[0], _INT_BYTES) if args[1] == 1 else b""
        return self._target(int.from_bytes(data, "little"), now) if data else ("events", "")

    def _target(self, descriptor: int, now: int) -> tuple[str, str]:
        """(kind, text) of what is behind a descriptor."""
        known = self._targets.get(descriptor)
        if known is None or now >= known[0]:
            if len(self._targets) >= MOST:
                self._targets.clear()
            known = self._targets[descriptor] = (now + _AGAIN_NS, *self._resolved(descriptor))
        return known[1:]

    def _resolved(self, descriptor: int) -> tuple[str, str]:
        size = self._library().readlink(b"/proc/self/fd/%d" % descriptor, self._buffer, _TEXT_BYTES)
        text = os.fsdecode(self._buffer.raw[: max(size, 0)])
        if text.startswith("socket:"):
            return self._peer(descriptor)
        if text.startswith("pipe:"):
            return "pipe", ""
        if text.startswith("/dev/"):
            return "device", text
        return ("file", text) if text.startswith("/") else ("", text)

    def _peer(self, descriptor: int) -> tuple[str, str]:
        """The other end of a socket; ``client`` for a connection that seems to have been made by the other end."""
        libc = self._library()
        peer, own = self._address(libc.getpeername, descriptor), self._address(libc.getsockname, descriptor)
        family = int.from_bytes(peer[:2], "little")
        if family == _UNIX:
            return "socket", next((os.fsdecode(text) for one in (peer, own) if (text := one[2:].split(b"\0")[0])), "")
        host, port = self._host(family, peer)
        client = bool(own) and int.from_bytes(own[2:4], "big") < _EPHEMERAL <= port
        return ("client", host) if client else ("socket", "%s:%d" % (host, port) if host else "")

    def _address(self, ask: Callable[..., int], descriptor: int) -> bytes:
        size = ctypes.c_uint32(_ADDRESS_BYTES)
        failed = ask(descriptor, self._buffer, ctypes.byref(size))
        return b"" if failed else self._buffer.raw[: min(size.value, _ADDRESS_BYTES)]

    def _host(self, family: int, address: bytes) -> tuple[str, int]:
        """Host and port of an internet address; ("", 0) for any other."""
        if family not in (_INET, _INET6):
            return "", 0
        raw = address[4:8] if family == _INET else address[8:24]
        self._library().inet_ntop(family, raw, self._buffer, _TEXT_BYTES)
        text = self._buffer.value.decode()
        return "[%s]" % text if family == _INET6 else text, int.from_bytes(address[2:4], "big")

    def _process(self, number: int) -> str:
        """The name of a child process."""
        return os.fsdecode(self._file(b"/proc/%d/comm" % number, 64, 0)).strip()

    def _memory(self, address: int, size: int) -> bytes:
        return self._file(b"/proc/self/mem", size, address)

    def _file(self, path: bytes, size: int, offset: int) -> bytes:
        libc = self._library()
        file = libc.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if file < 0:
            return b""
        found = libc.pread(file, self._buffer, size, offset)
        libc.close(file)
        return self._buffer.raw[: max(found, 0)]

    def _library(self) -> ctypes.PyDLL:
        """The C library, called without letting go of the interpreter lock."""
        if self._libc is None:
            self._libc = libc = ctypes.PyDLL(None)
            libc.readlink.restype = libc.pread.restype = ctypes.c_ssize_t
            libc.readlink.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
            libc.pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long)
            libc.inet_ntop.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32)
            libc.inet_ntop.restype = ctypes.c_void_p
        return self._libc
