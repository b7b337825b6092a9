"""Starts the sidecar of an enabled job: ``stepscope.sidecar.always_on_start.main([RUN, STARTS])``.

Nothing of the job's is held: a pipe that never closes would stall its reader.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher import background
from stepscope.native.garbage import collect_less

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_OWN_DESCRIPTOR = 3


def main(argv: Sequence[str]) -> None:
    """Entry point."""
    _leave_the_job()
    background.become()
    collect_less()
    from stepscope.sidecar import always_on  # what it loads is loaded at low priority

    always_on.follow_job(Path(argv[0]), int(argv[1]))


def _leave_the_job() -> None:
    """Hold nothing of the job's: its signal mask, its descriptors."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for fd in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if fd >= _FIRST_OWN_DESCRIPTOR:
            try:
                os.close(fd)
            except OSError:
                continue
    os.umask(0o077)
