"""Completes an unfinished session: job and collector both died, or the machine's owner ended them.

Durable data are in the session; the rest is in the rings and logs of the run directory, as long as that exists
(/dev/shm is emptied by a reboot).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import msgspec

from stepscope.collector.recorder import Recording
from stepscope.launcher import rundir
from stepscope.native import process_stat
from stepscope.store import newest
from stepscope.store.manifests import read_manifest
from stepscope.store.writer import SessionWriter
from stepscope.tables.findings import Diagnostic

RECOVERED = "DX109"


def recover(session: Path) -> bool:
    """Complete an unfinished session unless it is being written; return whether that was done.

    Raises:
        SessionError: there is no session at ``session``.
    """
    manifest = read_manifest(session)
    if manifest.state != "running":
        return False
    run = Path(manifest.run_dir)
    lock = _lock(run)
    if lock is None:
        return False
    try:
        job = rundir.read_job(run)
        lives = job is not None and job.mode != "attach" and process_stat.alive(job.pid, job.start_ticks)
        if lives and rundir.read_ended(run) is None:  # a kernel outlives its cells
            return False
        if not os.access(session, os.W_OK):
            return False
        if lock < 0 or not _belongs(run, session):
            if not run.exists():
                _tidy(run.name)
            _state_loss(session)
            return True
        recording = Recording(run, session, starts=manifest.sidecar_starts)
        if not recording.recovered():  # otherwise data that the disk refuses wait where they are
            rundir.remove(run)
        return True
    finally:
        if lock >= 0:
            os.close(lock)


def _tidy(name: str) -> None:
    """Remove the empty directories of a run whose first one is gone, as /dev/shm is after a reboot.

    Only empty ones: the run may go on in a container with another /dev/shm, and rings where we look.
    """
    for place in rundir.temporary_directories():
        with contextlib.suppress(OSError):
            (place / name).rmdir()


def unfinished(session: Path) -> bool:
    """Whether a session still waits for data in its run directory."""
    return read_manifest(session).state == "running"


def _lock(run: Path) -> int | None:
    """The sidecar's lock; None if a sidecar holds it, -1 if the run directory is gone or not ours."""
    try:
        fd = os.open(run / rundir.LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _belongs(run: Path, session: Path) -> bool:
    """Whether the run directory is ours and was made for this session: a foreign manifest may name any."""
    try:
        mine = run.stat().st_uid == os.getuid()
    except OSError:
        return False
    named = rundir.session_of(run)
    return mine and named is not None and os.path.realpath(named) == os.path.realpath(session)


def _state_loss(session: Path) -> None:
    manifest = read_manifest(session)
    text = (
        "the run was not finished and its run directory is gone: what was recorded after the last durable segment, "
        "up to 5 s at its begin and up to 30 s later, is lost, and so are the copies of the sources not yet made"
    )
    manifest = msgspec.structs.replace(
        manifest,
        state="recovered",
        ended_ns=newest.newest_ns(session),
        diagnostics=(*manifest.diagnostics, Diagnostic(code=RECOVERED, text=text)),
    )
    SessionWriter(session).write_manifest(manifest)
