"""A separate stack for the signals of the main thread.

A signal's frame is put below the stack pointer of the thread that it interrupts, 3 to 11 KB of it. Code generated at
run time may use that register as it likes: oneDNN's avx512 sgemm lets it point to the start of a buffer from malloc
while it computes (seen on TensorFlow 2.15 and 2.21: "corrupted size vs. prev_size", or a jump into nowhere much later).
A signal that arrives there overwrites the heap before the buffer, unless it runs on an alternate stack.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

BYTES = 256 << 10
"""Stack size: the frame with all registers of AVX-512 and AMX (11 KB), Python's C handler, and nested signals."""
_SA_ONSTACK = 0x08000000
_PROTECTION = 0x1 | 0x2
_PRIVATE_ANONYMOUS = 0x02 | 0x20
_FAILED = ctypes.c_void_p(-1).value


class _Stack(ctypes.Structure):
    """The struct stack_t. Source: sigaltstack(2)."""

    _fields_ = (("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


class _Action(ctypes.Structure):
    """The struct sigaction of glibc, 64 bit. Source: sigaction(2)."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def give(libc: Foreign) -> None:
    """Ensure that the calling thread has an alternate stack that is large enough.

    A smaller one that somebody has set is replaced. The memory is never freed: nobody knows which signal is last.

    Raises:
        OSError: there is no memory, or no right to set it.
    """
    current = _Stack()
    if libc.sigaltstack(None, ctypes.byref(current)):
        raise _error("sigaltstack")
    if current.address and current.size >= BYTES:
        return
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    address = libc.mmap(None, BYTES, _PROTECTION, _PRIVATE_ANONYMOUS, -1, 0)
    if address == _FAILED:
        raise _error("mmap")
    if libc.sigaltstack(ctypes.byref(_Stack(address, 0, BYTES)), None):
        raise _error("sigaltstack")


def use(libc: Foreign, number: int) -> None:
    """Run the handler of a signal on the alternate stack; Python sets that itself from 3.10 on.

    Raises:
        OSError: no such signal.
    """
    action = _Action()
    if libc.sigaction(number, None, ctypes.byref(action)):
        raise _error("sigaction")
    action.flags |= _SA_ONSTACK
    if libc.sigaction(number, ctypes.byref(action), None):
        raise _error("sigaction")


def _error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, "%s: %s" % (call, os.strerror(number)))
