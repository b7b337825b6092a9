"""Removes abandoned run directories, and completes the sessions that they belong to; with them, what else is left.

A run directory is abandoned if no sidecar holds its lock, and the process that made it, the job, and every process
measured in it are dead. Only this user's, and only those of this process's own pid namespace: /dev/shm may be shared
between containers.
"""

from __future__ import annotations

import os
from pathlib import Path

from stepscope.collector import host_members, recover
from stepscope.launcher import run_directories, rundir, scratch
from stepscope.tables import layout
from stepscope.tables.errors import StepscopeError


def sweep(own: Path | None = None) -> int:
    """Remove abandoned directories other than ``own``; return their number."""
    swept = 0
    host_members.sweep()
    scratch.sweep()
    for run in run_directories.listed(os.getuid()):
        if run != own and run_directories.abandoned(run) and _clear(run):
            swept += 1
    return swept


def _clear(run: Path) -> bool:
    """Complete the session of an abandoned run directory, then delete it; return whether it was deleted."""
    session = rundir.session_of(run)
    if session and layout.is_session(Path(session)):
        try:
            recover.recover(Path(session))
        except (StepscopeError, OSError):  # no room, or damaged: this may be all that is left of the run
            return False
        if run.is_dir() and recover.unfinished(Path(session)):
            return False
    rundir.remove(run)
    return not run.exists()
