"""The end of a job whose capture is still being written.

CPython ends a thread that comes back from foreign code after finalization has begun by unwinding its stack, and in C++
code that must not throw this calls ``std::terminate``, which aborts the process: 3 of 6 jobs that ended while
TensorFlow wrote a trace died so, none of 8 after ``let_go`` (docs/decisions/0043-first-look.md).
"""

from __future__ import annotations

import ctypes
import os
import sys

from stepscope.wire.env import SIGNALLED_NAME

_LIBRARY = "libstdc++.so.6"
_SET_TERMINATE = "_ZSt13set_terminatePFvvE"


def interrupted(run: str) -> bool:
    """Whether the job ends by a signal: it was interrupted, or the launcher has passed one on that ends jobs."""
    last = getattr(sys, "last_type", None)
    if isinstance(last, type) and issubclass(last, KeyboardInterrupt):
        return True
    return os.path.exists(os.path.join(run, SIGNALLED_NAME))


def let_go() -> bool:
    """The process ends now, whatever our threads do: one that is unwound through C++ waits instead of aborting.

    Returns False if that cannot be arranged.
    """
    try:
        set_terminate = getattr(ctypes.CDLL(_LIBRARY), _SET_TERMINATE)
        wait = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p)
    except (OSError, AttributeError):  # another C++ library
        return False
    set_terminate.argtypes = (ctypes.c_void_p,)
    set_terminate.restype = ctypes.c_void_p
    set_terminate(wait)
    return True
