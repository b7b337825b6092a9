"""Finds run directories and determines their state. Light-weight: ``ps`` uses it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher import rundir
from stepscope.native import process_stat
from stepscope.wire import run_directory
from stepscope.wire.env import CONFIG_NAME, PROCS_NAME, RUN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNKNOWN_AGE_S = 86_400.0
"""Age below which a directory without an owner is left alone."""


def listed(uid: int | None = None) -> Iterator[Path]:
    """The run directories of one user (None: of all whose files we may read), in any state."""
    for folder in rundir.temporary_directories():
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            owner = owner_of(name)
            path = folder / name
            if owner < 0 or (uid is not None and owner != uid):
                continue
            try:
                mine = path.lstat().st_uid == owner and not path.is_symlink()
            except OSError:
                continue
            if mine and (path / CONFIG_NAME).is_file():
                yield path


def owner_of(name: str) -> int:
    """The user id in a run directory's name, -1 if it is not one."""
    uid, _, token = name.removeprefix(RUN_PREFIX).partition("-")
    return int(uid) if name.startswith(RUN_PREFIX) and uid.isdigit() and token.isalnum() else -1


def abandoned(run: Path) -> bool:
    """Whether a run directory has no owner, no sidecar and no measured process."""
    try:
        age = time.time() - run.stat().st_mtime
    except OSError:
        return False
    owner = _owner(run)
    if owner is None:
        return age > _UNKNOWN_AGE_S and not _locked(run)
    job = rundir.read_job(run)
    attached = job is not None and job.mode == "attach"  # its process outlives who looked at it
    return not process_stat.alive(*owner) and (attached or not _job_lives(run)) and not _locked(run)


def lives(run: Path) -> bool:
    """Whether the job of a run directory runs, as far as visible from here."""
    return _job_lives(run) if _owner(run) is not None else _locked(run)


def _owner(run: Path) -> tuple[int, int] | None:
    """Pid and start of the process that made it; None if that is unknown, or meaningless here."""
    try:
        config = json.loads((run / CONFIG_NAME).read_text("utf-8"))
        owner = int(config["owner_pid"]), int(config["owner_ticks"])
        namespace = str(config["pid_namespace"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return owner if namespace == run_directory.pid_namespace() else None


def _job_lives(run: Path) -> bool:
    """Whether the job, or a process that is measured with it, is alive."""
    job = rundir.read_job(run)
    if job is not None and process_stat.alive(job.pid, job.start_ticks):
        return True
    return any(_alive(name) for name in _processes(run))


def _processes(run: Path) -> list[str]:
    try:
        return os.listdir(run / PROCS_NAME)
    except OSError:
        return []


def _alive(name: str) -> bool:
    pid, start, *_ = [*name.split("-"), ""]
    return pid.isdigit() and start.isdigit() and process_stat.alive(int(pid), int(start))


def _locked(run: Path) -> bool:
    """Whether a sidecar is at work."""
    import fcntl  # reports are read where nothing runs, without it

    try:
        fd = os.open(run / rundir.LOCK_NAME, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
