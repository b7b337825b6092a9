"""Takes one of our processes out of the way of the job, the terminal and the user."""

from __future__ import annotations

import os
import signal

from stepscope.native import own_python


def become() -> None:
    """Leave the terminal's reach and be nice."""
    if os.getsid(0) != os.getpid():
        try:
            os.setsid()
        except OSError:  # leads a group already
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(max(0, own_python.NICE - os.nice(0)))
