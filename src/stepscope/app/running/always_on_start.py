"""Starts the sidecar of an enabled job: ``stepscope.app.running.always_on_start.main([RUN, STARTS, WAIT])``.

Light-weight: a job that is over before ``WAIT`` seconds have passed costs nothing but this process, which then removes
the job's run directory. Nothing of the job's is held meanwhile: a pipe that never closes would stall its reader.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector.launch import background, run_directories, rundir

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_OWN_DESCRIPTOR = 3


def main(argv: Sequence[str]) -> None:
    """Entry point."""
    run, starts, wait_s = Path(argv[0]), int(argv[1]), float(argv[2])
    _leave_the_job()
    background.become()
    if wait_s:
        time.sleep(wait_s)
        if not run_directories.lives(run):
            rundir.remove(run)
            return
    from stepscope.app.running import always_on  # half a second of CPU time, spent if there is a job

    always_on.follow_job(run, starts)


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
