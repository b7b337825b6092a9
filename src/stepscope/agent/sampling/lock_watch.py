"""Detects who waits for the interpreter lock, from the kernel's state of a thread at this moment.

``/proc/self/task/TID/syscall`` gives the system call in which a thread is blocked, with its arguments (proc(5)); a
process may read it for its own threads. A thread that waits for the lock is blocked in a futex inside CPython's
``_PyRuntime``, where the lock lies from 3.9 to 3.13 at least. Nothing else there is waited on.

The agent's thread looks once another thread than the main one does something. It keeps the lock: a look takes some
microseconds, and releasing the lock first would change the result. On some kernels the reader waits for a tick until
the other thread is off its CPU; after such a long look there is none for five hundred times as long.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from stepscope.agent.core.threads import native_of
from stepscope.wire.kinds import LockState
from stepscope.wire.log import moved_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.state import AgentState

_MOST_THREADS = 8
"""Files kept open; threads beyond that are not examined."""
_LONG_NS = 200_000
_PAUSE = 500
"""Pause after a look longer than ``_LONG_NS``, as a multiple of its length."""
_TEXT_BYTES = 256
_SYMBOL_ENTRY = 1
"""Flag RTLD_DL_SYMENT. Source: dladdr1(3)."""
_UNKNOWN, _RUNS = int(LockState.NOT_LOOKED), int(LockState.RUNS)
_WAITS, _ELSEWHERE = int(LockState.WAITS), int(LockState.ELSEWHERE)


class _Info(ctypes.Structure):
    """The struct Dl_info. Source: dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class _Symbol(ctypes.Structure):
    """The struct Elf64_Sym. Source: elf(5)."""

    _fields_ = (
        ("name", ctypes.c_uint32),
        ("info", ctypes.c_uint8),
        ("other", ctypes.c_uint8),
        ("section", ctypes.c_uint16),
        ("value", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


class LockWatch:
    """Examines threads of one process; used by the agent's thread only."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._files: dict[int, int] = {}
        self._text = ctypes.create_string_buffer(_TEXT_BYTES)
        self._place = ctypes.addressof(self._text)
        self._read: Optional[Callable[..., int]] = None
        self._from = self._to = 0
        """Address range of CPython's own state."""
        self._asked = False
        self._due = 0
        self.text = b""
        """What the kernel said in the last look; empty if it said nothing."""

    def look(self, ident: int) -> int:
        """The present ``LockState`` of the thread with this ident."""
        self.text = b""
        if not self._asked:
            self._ask()
        if self._read is None:
            return _UNKNOWN
        file = self._files.get(ident)
        if file is None:
            file = self._open(ident)
            if file is None:
                return _UNKNOWN
        start = time.monotonic_ns()
        if start < self._due:
            return _UNKNOWN
        size = self._read(file, self._place, _TEXT_BYTES - 1, 0)
        took = time.monotonic_ns() - start
        if took > _LONG_NS:
            self._due = start + took * _PAUSE
        if size <= 0:  # the thread has ended
            os.close(self._files.pop(ident))
            return _UNKNOWN
        self.text = self._text.raw[:size]
        words = self.text.split(None, 2)
        if words[0] == b"running":
            return _RUNS
        return _WAITS if len(words) > 1 and self._from <= int(words[1], 16) < self._to else _ELSEWHERE

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.popitem()[1])

    def _ask(self) -> None:
        """Find out once whether and how looking is possible here."""
        self._asked = True
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            return  # there is no lock to wait for
        try:
            why = self._prepare()
        except (OSError, AttributeError, ValueError) as error:
            why = "%s: %s" % (type(error).__name__, error)
        if why:
            self._read = None
            self._state.lines.diagnostic("DX916", "waits for the interpreter lock (GIL) are not visible: " + why)

    def _prepare(self) -> str:
        if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != ctypes.sizeof(ctypes.c_uint64):
            return "needs 64-bit Linux"
        self._from = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        size = _size_of(self._from)
        if not size:
            return "the symbol _PyRuntime has no size"
        self._to = self._from + size
        with open("/proc/self/task/%d/syscall" % threading.get_native_id(), "rb") as file:
            file.read(1)
        read = ctypes.PyDLL(None).pread
        read.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long)
        read.restype = ctypes.c_ssize_t
        self._read = read
        return ""

    def _open(self, ident: int) -> Optional[int]:
        native = native_of(ident)
        if not native or len(self._files) >= _MOST_THREADS:
            return None
        try:
            self._files[ident] = moved_up(os.open("/proc/self/task/%d/syscall" % native, os.O_RDONLY))
        except OSError:
            return None  # it has just ended
        return self._files[ident]


def _size_of(address: int) -> int:
    """Bytes of the exported object at this address, 0 if the linker does not say."""
    libc = ctypes.CDLL(None)
    info, entry = _Info(), ctypes.POINTER(_Symbol)()
    found = libc.dladdr1(ctypes.c_void_p(address), ctypes.byref(info), ctypes.byref(entry), _SYMBOL_ENTRY)
    return int(entry.contents.size) if found and entry and info.address == address else 0
