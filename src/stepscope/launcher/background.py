"""Takes one of our processes out of the way of the job, the terminal and the user."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from stepscope.native import own_python

_FIRST_OWN_DESCRIPTOR = 3


def become() -> None:
    """Leave the terminal's reach and be nice."""
    if os.getsid(0) != os.getpid():
        try:
            os.setsid()
        except OSError:  # leads a group already
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(max(0, own_python.NICE - os.nice(0)))


def leave_the_job() -> None:
    """Hold nothing of the job's: its signal mask, its descriptors."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for fd in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if fd >= _FIRST_OWN_DESCRIPTOR:
            try:
                os.close(fd)
            except OSError:
                continue
    os.umask(0o077)
