"""The folder of the sessions of ``enable``: its place, the creation of new sessions, and the deletion of old ones.

Only sessions made by ``enable`` are ever deleted, and only finished ones, oldest first; sessions being written share
the rest of the quota. One sidecar at a time cleans up.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.collector.always_on.pth_file import MIN_JOB_QUOTA, Settings
from stepscope.launcher import mask, session_place
from stepscope.launcher.rundir import JobFacts
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError
from stepscope.wire import sessions_folder
from stepscope.wire.env import ENABLED_NAME

_LOCK = ".keeping.lock"


def claim(run: Path, job: JobFacts, settings: Settings, origin_ns: int) -> Path:
    """Make the session of a job, with the manifest from which it could be recovered.

    Raises:
        CaptureError: no folder can hold it.
    """
    why = ""
    for folder in map(Path, sessions_folder.candidates(settings.sessions)):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.getuid():
                why = f"{folder} belongs to somebody else"
                continue
            session = session_place.claim_in(folder, job.command)
            _write_manifest(session, run, job, origin_ns)
        except OSError as error:
            why = f"{folder}: {error.strerror or error}"
            continue
        return session
    raise CaptureError(f"no folder for the session ({why}); choose a writable one: stepscope enable --sessions DIR")


def _write_manifest(session: Path, run: Path, job: JobFacts, origin_ns: int) -> None:
    manifest = {
        "schema_version": 1,
        "stepscope_version": __version__,
        "id": os.urandom(8).hex(),
        "name": session.name.removesuffix(layout.SUFFIX),
        "command": mask.mask_command(job.command),
        "cwd": job.cwd,
        "started_unix_ns": time.time_ns() - (time.monotonic_ns() - origin_ns),
        "origin_monotonic_ns": origin_ns,
        "mode": "enable",
        "state": "running",
        "job_pid": job.pid,
        "run_dir": str(run),
    }
    layout.write_atomic(session / layout.MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


class StoredSession(Struct, frozen=True, kw_only=True):
    """One session in the folder."""

    path: Path
    bytes: int
    ended_s: float
    running: bool


def sessions_in(folder: Path) -> list[StoredSession]:
    """The sessions of ``enable`` in a folder, joint ones too, oldest first."""
    found = []
    for path in folder.glob(f"*{layout.SUFFIX}") if folder.is_dir() else ():
        try:
            manifest = json.loads((path / layout.MANIFEST).read_text("utf-8"))
            if "enable" not in {manifest.get("mode"), manifest.get("joined_by")} or path.is_symlink():
                continue
            running = manifest.get("state") == "running" and Path(str(manifest.get("run_dir"))).is_dir()
            at_s = (path / layout.MANIFEST).stat().st_mtime
        except (OSError, ValueError, AttributeError):
            continue
        found.append(StoredSession(path=path, bytes=_bytes_of(path), ended_s=at_s, running=running))
    return sorted(found, key=lambda kept: kept.ended_s)


def _bytes_of(path: Path) -> int:
    """Bytes of its files; of a file that a joint session has too, its part."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                about = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            total += about.st_size // max(1, about.st_nlink)
    return total


def keep_house(folder: Path, settings: Settings, *, own: Path | None = None) -> int:
    """Delete sessions that are too old or over the quota; return the number of bytes that the session ``own`` may
    take.
    """
    lock = _lock(folder)
    try:
        kept = sessions_in(folder)
        if lock >= 0:
            kept = _delete(kept, settings)
    finally:
        if lock >= 0:
            os.close(lock)
    finished = sum(k.bytes for k in kept if not k.running and k.path != own)
    running = max(1, sum(k.running for k in kept))
    share = (settings.quota_bytes - finished) // running
    return max(MIN_JOB_QUOTA, min(settings.job_quota_bytes, share))


def _delete(kept: list[StoredSession], settings: Settings) -> list[StoredSession]:
    """Delete the finished sessions that must go; return those that stay."""
    oldest_s = time.time() - settings.keep_days * 86_400
    total = sum(k.bytes for k in kept)
    left = []
    for session in kept:
        over = total > settings.quota_bytes or session.ended_s < oldest_s
        if session.running or not over:
            left.append(session)
            continue
        shutil.rmtree(session.path, ignore_errors=True)
        total -= session.bytes
    return left


def _lock(folder: Path) -> int:
    """The folder's lock, -1 while another sidecar cleans up."""
    try:
        fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return -1
    return fd


def settings_of(run: Path) -> Settings | None:
    """The settings of a job's environment; None for a job of ``run``."""
    try:
        return msgspec.json.decode((run / ENABLED_NAME).read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return None
