"""Members of a job on this host find each other, and the one that ends last joins their sessions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.collector import host_members
from stepscope.collector.host_members import MemberSession
from stepscope.launcher import rundir, session_place
from stepscope.sessions import merge
from stepscope.tables import layout
from stepscope.tables.errors import StepscopeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.collector.recorder import Recording
    from stepscope.model.api.status import Status
    from stepscope.model.session.member import MemberInfo

JOINT = "DX193"
"""The other members on this host, and where the joint session is made."""
FAILED = "DX195"
"""Members on this host could not be joined."""


class Joining:
    """Enters the session among those of the job's members on this host, as soon as it is known to be one."""

    def __init__(self, recording: Recording) -> None:
        """Begin with a job that is not known to be a member."""
        self._recording = recording
        self._names: tuple[str, ...] = ()

    def tick(self, now_ns: int, state: str) -> None:
        """What is due at this moment."""
        del now_ns, state
        members = _members(self._recording)
        names = tuple(member.name for member in members)
        if names != self._names:
            self._names = names
            _register(self._recording, members)


def announce(recording: Recording) -> None:
    """Before the report: write down which other members ran here, and where the joint report is found."""
    members = _members(recording)
    known = _register(recording, members) if members else None
    if known is None or len(known.entries) <= 1:
        return
    names = sorted({name for entry in known.entries for name in entry.names})
    recording.manifest = msgspec.structs.replace(recording.manifest, joint=known.joint)
    text = (
        f"{', '.join(names)} of the job run on this host; when the last has ended, their joint report is {known.joint}"
    )
    recording.note(JOINT, text)
    recording.write_notes()


def join(recording: Recording) -> Path | None:
    """After the report: join the sessions if no other member runs here any more. Return the joint session's path."""
    members = _members(recording)
    if not members:
        return None
    names = [member.name for member in members]
    try:
        tasks = len(members[0].names)
        known = host_members.leave(members[0].job_id, recording.session, names, time.monotonic_ns(), tasks)
        if known is None:
            return None
        paths = [Path(entry.session) for entry in known.entries if layout.is_session(Path(entry.session))]
        if len(paths) <= 1:
            return None
        by = recording.manifest.mode
        return merge.merge(sorted(paths), _free(Path(known.joint)), joined_by=by)
    except (StepscopeError, OSError) as error:
        recording.note(FAILED, f"the sessions of the job's members on this host could not be joined: {error}")
        recording.write_notes()
        return None


def shown(recording: Recording, status: Status) -> Status:
    """A status that says which tasks of which cluster the job's processes are."""
    members = _members(recording)
    if not members:
        return status
    names = ", ".join(sorted({member.name for member in members}))
    return msgspec.structs.replace(status, member=names, cluster=members[0].job_id, cluster_tasks=len(members[0].names))


def _free(path: Path) -> Path:
    """A path that is not taken; that of the manifests unless somebody has made something there meanwhile."""
    stem = path.name.removesuffix(layout.SUFFIX)
    names = (f"{stem}{'' if n == 1 else f'-{n}'}{layout.SUFFIX}" for n in range(1, 1000))
    return next((path.with_name(name) for name in names if not path.with_name(name).exists()), path)


def _members(recording: Recording) -> list[MemberInfo]:
    """The tasks of one cluster that processes of this session are; none if the job has no id."""
    infos = [worker.info.member for worker in recording.drainer.workers.values()]
    found = [info for info in infos if info is not None and info.tasks > 1 and info.job_id]
    return [info for info in found if info.job_id == found[0].job_id]


def _register(recording: Recording, members: Sequence[MemberInfo]) -> host_members.Members | None:
    """Enter the session; None if it is a trial, or that is not possible."""
    if rundir.is_trial(recording.run):
        return None
    entry = MemberSession(
        session=str(recording.session),
        run=str(recording.run),
        names=tuple(member.name for member in members),
        began_ns=recording.manifest.origin_monotonic_ns,
    )
    stem = session_place.session_stem(recording.manifest.command or ("job",))
    joint = recording.session.parent / f"{stem}-{time.strftime('%m%d-%H%M')}-job{layout.SUFFIX}"
    try:
        return host_members.register(members[0].job_id, entry, _free(joint))
    except OSError as error:
        recording.note(FAILED, f"other members of the job on this host cannot be found: {error}")
        return None
