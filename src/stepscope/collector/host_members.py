"""Finds the other members of a job on this host: their collectors share a small file in the host's memory.

The file is named after the user and the job, is private to the user, and is locked while it is read and changed. It
holds the sessions of the members, and which of them still run; the collector that ends last learns that it is the last,
and the file goes. It also goes when the only one that is known has ended, if that has all tasks or nothing else is
measured here that could say late that it is a member. What a collector that died has left in it is recognised by its
run directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.clocks import clock_domain
from stepscope.launcher import run_directories, rundir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIX = "stepscope-members-"
MAX_BYTES = 16 << 20
LATE_NS = 600_000_000_000
"""Time after the end of the last member after which none comes any more that could be joined with it."""
_TRIES = 100
"""Times that a file is opened again that was removed while its lock was waited for."""


class MemberSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a member. Times are CLOCK_MONOTONIC in nanoseconds."""

    session: str
    run: str
    names: tuple[str, ...]
    """Names of its tasks."""
    began_ns: int
    ended_ns: int = 0
    """0: it runs, or its report is being written."""

    @property
    def runs(self) -> bool:
        """Whether its job or its collector is there."""
        return not self.ended_ns and Path(self.run).is_dir() and not run_directories.abandoned(Path(self.run))


class Members(msgspec.Struct, kw_only=True):
    """All members of a job that are known on this host."""

    joint: str = ""
    """Path of the joint session that is made when the last of them has ended."""
    entries: tuple[MemberSession, ...] = ()

    def others(self, session: str) -> tuple[MemberSession, ...]:
        """Entries of the other sessions."""
        return tuple(entry for entry in self.entries if entry.session != session)


_MEMBERS = msgspec.json.Decoder(Members)
"""Made at import, by one thread: two threads that first decode a type at the same time crash (msgspec 0.22)."""


def register(job_id: str, entry: MemberSession, joint: Path) -> Members:
    """Enter a session, or enter it again; what is left of an earlier run of the job goes.

    Args:
        job_id: what only members of this job share.
        entry: of the session.
        joint: path of the joint session, if no other member has named one.

    Raises:
        OSError: there is no place for the file.
    """
    with _opened(job_id) as members:
        others = members.others(entry.session)
        if others and not any(one.runs or one.ended_ns >= entry.began_ns for one in others):
            others, members.joint = (), ""
        members.entries = (*others, entry)
        members.joint = members.joint or str(joint)
        return Members(joint=members.joint, entries=members.entries)


def leave(job_id: str, session: Path, names: Sequence[str], ended_ns: int, tasks: int) -> Members | None:
    """A session and its report are complete. Return all members if no other runs any more, else None.

    Args:
        job_id: what only members of this job share.
        session: path of the session.
        names: names of its tasks.
        ended_ns: when it was complete.
        tasks: number of tasks that the job has, on all hosts.

    Raises:
        OSError: there is no place for the file.
    """
    with _opened(job_id) as members:
        others = members.others(str(session))
        mine = next((entry for entry in members.entries if entry.session == str(session)), None)
        if mine is None:
            return None
        entry = msgspec.structs.replace(mine, names=tuple(names), ended_ns=ended_ns)
        members.entries = (*others, entry)
        if any(one.runs for one in others):
            return None
        if not others:
            whole = len(set(names)) >= tasks
            members.entries = () if whole or not _may_come(members) else members.entries
            return None
        found = Members(joint=members.joint, entries=members.entries)
        members.entries = ()
        return found


def _may_come(members: Members) -> bool:
    """Whether somebody is measured here who is not known as a member of the job: it may say so late."""
    known = {entry.run for entry in members.entries}
    runs = run_directories.listed(os.getuid())
    return any(str(run) not in known and not run_directories.abandoned(run) for run in runs)


def others_run(job_id: str, session: Path) -> bool:
    """Whether other members of the job run on this host.

    Raises:
        OSError: there is no place for the file.
    """
    with _opened(job_id) as members:
        return any(entry.runs for entry in members.others(str(session)))


def running(job_id: str, session: Path) -> tuple[MemberSession, ...]:
    """The other members of the job that run on this host.

    Raises:
        OSError: there is no place for the file.
    """
    with _opened(job_id) as members:
        return tuple(entry for entry in members.others(str(session)) if entry.runs)


def known(job_id: str) -> tuple[MemberSession, ...]:
    """All members of the job that are known on this host.

    Raises:
        OSError: there is no place for the file.
    """
    with _opened(job_id) as members:
        return members.entries


def reach() -> bytes:
    """Says whose members are found from here: equal for two collectors that share their files of members, 8 bytes.

    Containers on one machine have one clock, and often folders for such files of their own.
    """
    for place in rundir.temporary_directories():
        try:
            about = place.stat()
        except OSError:
            continue
        named = f"{clock_domain.boot_id()} {os.getuid()} {about.st_dev} {about.st_ino}"
        return hashlib.sha256(named.encode()).digest()[:8]
    return os.urandom(8)


def path_of(job_id: str, place: Path) -> Path:
    """The file of a job in a folder for temporary files."""
    digest = hashlib.sha256(job_id.encode("utf-8", "replace")).hexdigest()[:16]
    return place / f"{PREFIX}{os.getuid()}-{digest}.json"


@contextmanager
def _opened(job_id: str) -> Iterator[Members]:
    """The members, to be changed; no other process reads or changes them meanwhile. Without entries the file goes."""
    path, fd = _locked(job_id)
    try:
        data = os.pread(fd, MAX_BYTES, 0)
        try:
            members = _MEMBERS.decode(data) if data else Members()
        except msgspec.DecodeError:  # the last writer was killed
            members = Members()
        yield members
        if not members.entries:
            path.unlink(missing_ok=True)
            return
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(members), 0)
    finally:
        os.close(fd)


def _locked(job_id: str) -> tuple[Path, int]:
    problem = OSError("no folder for it")
    for place in rundir.temporary_directories():
        path = path_of(job_id, place)
        try:
            return path, _lock(path)
        except OSError as error:
            problem = error
    raise problem


def _lock(path: Path) -> int:
    """The locked file.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            about = os.fstat(fd)
            mine = about.st_uid == os.getuid()
            if mine and path.exists() and path.stat().st_ino == about.st_ino:
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if not mine:
            break
    raise OSError(f"{path} belongs to somebody else, or does not stay")


def sweep() -> None:
    """Remove files of this user's jobs whose members have ended, if none can come any more; their sessions stay."""
    for place in rundir.temporary_directories():
        try:
            found = sorted(place.glob(f"{PREFIX}{os.getuid()}-*.json"))
        except OSError:
            continue
        for path in found:
            _remove_old(path)


def _remove_old(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _awaited(os.pread(fd, MAX_BYTES, 0)):
            path.unlink(missing_ok=True)
    except OSError:  # in use
        return
    finally:
        os.close(fd)


def _awaited(data: bytes) -> bool:
    """Whether a member in the file runs, or another may come; not if its writer was killed."""
    try:
        members = _MEMBERS.decode(data)
    except msgspec.DecodeError:
        return False
    late_ns = time.monotonic_ns() - LATE_NS
    if any(entry.runs for entry in members.entries):
        return True
    return any(entry.ended_ns > late_ns for entry in members.entries) and _may_come(members)
