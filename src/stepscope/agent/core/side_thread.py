"""Threads of ours in the job: invisible to ``threading``, with the job's signals blocked."""

from __future__ import annotations

import _thread
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FAULTS = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP))

FORK_WARNS = sys.version_info >= (3, 12)
"""Whether ``os.fork`` warns if the process has another thread."""


def start(function: Callable[..., object], *args: object) -> None:
    """Run ``function(*args)`` on a new thread, which handles none of the job's signals.

    Made without a Thread object, so that ``threading.enumerate``, ``active_count`` and tracing hooks of the job do not
    see it. It never makes the job handle a signal late or lose one.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _FAULTS)
    try:
        _thread.start_new_thread(function, args)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
