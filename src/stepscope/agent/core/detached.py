"""Starts a command that is nobody's child, without the job noticing.

``fork`` would run the job's own fork handlers (OpenBLAS stops its threads, gRPC its polling) and copy its page tables.
Any ordinary child, also one that lives for a millisecond, can be what ``os.wait()`` in another thread of the job
returns, and makes the kernel send SIGCHLD. So the intermediate process is made by ``clone`` without a signal at its
end: ``wait`` without __WALL does not see such a child (wait(2), "clone children"). It shares the job's memory and runs
only libc's ``system`` on a stack of its own while the calling thread is suspended (CLONE_VFORK); ``system`` starts the
shell with posix_spawn, the shell starts the command in the background and ends, and the command belongs to init.

The call releases the GIL: the job's other threads go on. Measured: 2-7 ms for the calling thread.
"""

from __future__ import annotations

import ctypes
import os

_CLONE_VM = 0x100
_CLONE_VFORK = 0x4000
_WALL = 0x40000000
_STACK_BYTES = 1 << 18
"""``system`` needs some 2 KiB and posix_spawn a stack of its own."""
_ALIGNED = ~63


def available() -> bool:
    """Whether this libc has what is needed (glibc does, and with it every wheel of TensorFlow)."""
    libc = ctypes.CDLL(None)
    return hasattr(libc, "clone") and hasattr(libc, "system") and os.access("/bin/sh", os.X_OK)


def start(command: str) -> None:
    """Have /bin/sh run ``command``, which must put what lasts into the background.

    Raises:
        OSError: it could not be started.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    clone = libc.clone
    clone.restype = ctypes.c_int
    clone.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    text = ctypes.create_string_buffer(os.fsencode(command))
    stack = ctypes.create_string_buffer(_STACK_BYTES)
    top = (ctypes.addressof(stack) + _STACK_BYTES) & _ALIGNED
    system = ctypes.cast(libc.system, ctypes.c_void_p)
    pid = clone(system, top, _CLONE_VM | _CLONE_VFORK, ctypes.addressof(text))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    _, status = os.waitpid(pid, _WALL)
    if status:
        raise OSError("/bin/sh ended with %d" % status)
