"""The use case ``merge``: sessions of one job's members as one session (docs/decisions/0069)."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.launcher import scratch
from stepscope.model.session.merged import MergedMember
from stepscope.report.sections import failures
from stepscope.sessions import bundle as session_bundle
from stepscope.store import bundle
from stepscope.tables import layout
from stepscope.tables.errors import SessionError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.model.session.member import MemberInfo
    from stepscope.model.session.session import Manifest

UNKNOWN_JOB = "DX190"
"""Sessions whose launcher gives the job no id were joined."""
MISSING = "DX191"
"""Tasks of the job have no session in the joint one."""
BROKEN_OFF = "DX194"
"""A task ended, and not by itself, while others ran."""
LEFT_OUT = "DX198"
"""A session of a run that ended before it was known which task it is."""
CLOCKS_NS = 60_000_000_000
"""By how much the wall clocks of two hosts may differ."""
MOST_SESSIONS = 200
"""Most sessions of a folder that are looked at for other members."""
REPORT = "report.json"
SERVER = "ps"
"""Role of tasks that do not end by themselves."""
MOST_NAMES = 8
"""Missing tasks that are named; further ones are counted."""


class _TooEarlyError(SessionError):
    """A session is of no task that is known, because its run was broken off."""


class JoinedSession(Struct, frozen=True, kw_only=True):
    """A session to join."""

    path: Path
    manifest: Manifest
    members: tuple[MemberInfo, ...]

    @property
    def names(self) -> str:
        """Names of its tasks."""
        return ", ".join(member.name for member in self.members)

    @property
    def span(self) -> tuple[int, int]:
        """When it began and ended by its host's wall clock, ns."""
        return self.manifest.started_unix_ns, self.manifest.started_unix_ns + self.manifest.ended_ns


def merge(
    paths: Sequence[Path],
    target: Path | None = None,
    *,
    joined_by: str = "user",
    gathered: bool = False,
    notes: Sequence[Diagnostic] = (),
) -> Path:
    """Join sessions; return the joint session's directory. A joint session among them stands for its members.

    Args:
        paths: of the sessions.
        target: path of the joint one; None: named after the job, in the current directory.
        joined_by: who wants it (``Manifest.joined_by``).
        gathered: whether these are all that were gathered of a job: one alone is then no mistake.
        notes: what was said of these when they were joined before; what is not found again is said again.

    Raises:
        SessionError: they do not belong together, one cannot be read or is still written, or the target exists.
        OSError: no space, or no rights.
    """
    parts, left_out = _found(paths)
    _check(parts, alone=gathered or bool(left_out))
    target = target or Path(f"job-{(parts[0].members[0].job_id or parts[0].manifest.id)[:8]}{layout.SUFFIX}")
    if target.exists():
        raise SessionError(f"{target} already exists; choose another name with --output")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        entries: list[MergedMember] = []
        for part in parts:
            folder = _folder(part, {entry.folder for entry in entries})
            _place(part.path, temporary / layout.MEMBERS / folder)
            entries.append(MergedMember(folder=folder, id=part.manifest.id, name=part.names))
        manifest = _manifest(parts, tuple(entries), target.name.removesuffix(layout.SUFFIX))
        said = (*manifest.diagnostics, *left_out)
        said += tuple(note for note in notes if note.code not in {one.code for one in said})
        manifest = msgspec.structs.replace(manifest, joined_by=joined_by, diagnostics=said)
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        layout.write_atomic(temporary / layout.MANIFEST, data + b"\n")
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def gathered(
    source: str, key_file: Path | None, target: Path | None, *, ca_file: Path | None = None
) -> tuple[Path, tuple[str, ...]]:
    """Join the sessions of the newest job that were gathered, or unpack the one of a job that is no cluster's; return
    the session, and lines for the user.

    Raises:
        SessionError: as ``merge``; or no whole session is there.
        TargetError: the place cannot be read.
        UsageError: the address is none, or needs a key.
    """
    from stepscope.sessions.gathering import fetching, opening
    from stepscope.store.manifests import read_manifest

    place = opening.opened(source, key_file, ca_file)
    with tempfile.TemporaryDirectory(prefix=scratch.prefix("gather")) as folder:
        found = fetching.fetch(place, Path(folder))
        manifest = read_manifest(found.paths[0])
        if len(found.paths) == 1 and not any(worker.member for worker in manifest.workers):
            return session_bundle.unpack(found.paths[0], target or Path(manifest.name + layout.SUFFIX)), found.notes
        return merge(found.paths, target, gathered=True), found.notes


def is_gathered(source: str) -> bool:
    """Whether this names a place of gathered sessions: an address, or a folder that is no session."""
    return "://" in source or (Path(source).is_dir() and not layout.is_session(Path(source)))


def folders_of(joint: Path, manifest: Manifest) -> list[Path]:
    """The members' folders in a joint session; SessionError if one would leave it."""
    for entry in manifest.members:
        if not layout.MEMBER_PATTERN.fullmatch(entry.folder):
            raise SessionError(f"damaged: {joint}: the member {entry.folder!r} leaves the session")
    return [joint / layout.MEMBERS / entry.folder for entry in manifest.members]


def joint_of(session: Path) -> Path | None:
    """The joint session that holds this one, if the member that ended last has made one.

    Raises:
        SessionError: the manifest cannot be read.
    """
    from stepscope.store.manifests import read_manifest

    mine = read_manifest(session)
    joint = Path(mine.joint)
    if not mine.joint or not (joint / REPORT).is_file():
        return None
    return joint if any(entry.id == mine.id for entry in read_manifest(joint).members) else None


def offer(session: Path, shown: Callable[[Path], str] = str) -> str:
    """One line: where the joint report is, or which sessions in the same folder are of the same job, and the command
    that joins them; "" if the session is no member's, or its folder holds none of the others.

    Reads only manifests, of at most ``MOST_SESSIONS`` sessions, the newest first.
    """
    from stepscope.collector import host_members  # only Linux has what it needs

    try:
        joint = joint_of(session)
        if joint is not None:
            return f"joined with those of the job's other tasks: stepscope report {shlex.quote(shown(joint))}"
        (mine,) = _parts(session, completed=False)
        promised = mine.manifest.joint
        if promised and host_members.others_run(mine.members[0].job_id, session.absolute()):
            shell = shlex.quote(shown(Path(promised)))
            return f"others of the job still run here; when the last has ended: stepscope report {shell}"
        paths = [path for path in session.parent.iterdir() if path.name.endswith(layout.SUFFIX)]
        newest = sorted(paths, key=lambda path: -path.stat().st_mtime_ns)[:MOST_SESSIONS]
    except (SessionError, OSError, ValueError):
        return ""
    partners: dict[str, Path] = {}
    for path in newest:
        try:
            if not (path / layout.MEMBERS).is_dir():
                (part,) = _parts(path, completed=False)
                _check([mine, part])
                partners.setdefault(part.names, part.path)
        except SessionError:  # of another job, or still being written
            continue
    if not partners:
        return ""
    partners[mine.names] = session
    there, tasks = len(partners), len(mine.members[0].names)
    words = " ".join(shlex.quote(shown(partners[names])) for names in sorted(partners))
    return f"{there} of the job's {tasks} tasks have a session here: stepscope merge {words}"


def reported(session: Path, *, color: bool, width: int) -> str:
    """Write the reports of a joint session into it; return the one for a terminal.

    Raises:
        SessionError: a member is damaged.
        OSError: it cannot be written.
    """
    from stepscope.diagnosis import analyze
    from stepscope.report import terminal

    report = analyze.write_reports(session)
    page = str(session / "report.html")
    return terminal.render(report, color=color, width=width, session_path=str(session), html_path=page)


def _found(paths: Sequence[Path]) -> tuple[list[JoinedSession], list[Diagnostic]]:
    """The sessions to join, and what is said of those that died before it was known which task they are.

    Raises:
        SessionError: one cannot be joined, or none is of a task that is known.
    """
    parts, early = list[JoinedSession](), list[_TooEarlyError]()
    for path in paths:
        try:
            parts += _parts(path)
        except _TooEarlyError as error:
            early.append(error)
    if not parts and early:
        raise early[0]
    return parts, [Diagnostic(code=LEFT_OUT, text=f"left out: {error}") for error in early]


def _parts(path: Path, *, completed: bool = True) -> Iterator[JoinedSession]:
    """The session at ``path``, or the members of the joint session that it is.

    Args:
        path: of the session.
        completed: whether a session is completed that is unfinished and that no process writes any more.

    Raises:
        SessionError: it cannot be joined.
    """
    from stepscope.store.manifests import read_manifest

    if not path.exists():
        raise SessionError(f"{path}: no such session; expected a NAME{layout.SUFFIX} directory or a packed file")
    if completed:
        session_bundle.complete(path)
    manifest = read_manifest(path)
    if manifest.members:
        if not path.is_dir():
            raise SessionError(f"{path} is a packed joint session; unpack it first: stepscope unpack {path}")
        for folder in folders_of(path, manifest):
            yield from _parts(folder)
        return
    if manifest.state == "running":
        raise SessionError(f"{path} is still being written; join the sessions when the job has ended")
    members = tuple(worker.member for worker in manifest.workers if worker.member is not None)
    how = failures.of(manifest)
    if not members and how:
        raise _TooEarlyError(f"{path} {how} before any of its processes was known as a task of a cluster")
    if not members:
        raise SessionError(
            f"{path}: none of its processes is known as a task of a cluster (no launcher's variables, no TF_CONFIG, "
            "no cluster of TensorFlow's); expected sessions of one job's tasks"
        )
    yield JoinedSession(path=path, manifest=manifest, members=members)


def _check(parts: Sequence[JoinedSession], *, alone: bool = False) -> None:
    """Raise SessionError, in one line, unless the sessions are of tasks of one job, no two of one at the same time."""
    first = parts[0]
    seen: dict[str, list[JoinedSession]] = {}
    for part in parts:
        for member in part.members:
            one = first.members[0]
            if _job(member) != _job(one):
                raise SessionError(
                    f"{part.path} belongs to another job than {first.path}: {member.text}, job {member.job_id or '?'} "
                    f"by {member.launcher}; {one.text}, job {one.job_id or '?'} by {one.launcher}"
                )
            for other in seen.setdefault(member.name, []):
                if other is not part and not _apart(other, part):
                    raise SessionError(
                        f"{other.path} and {part.path} are both {member.name}, at the same time; expected one session "
                        "of each task, or of a task that was started again, one after the other"
                    )
            seen[member.name].append(part)
        begin, end = part.span
        if not any(b - CLOCKS_NS < end and begin < e + CLOCKS_NS for b, e in (o.span for o in parts if o is not part)):
            if len(parts) == 1 and alone:
                continue
            if len(parts) == 1:
                raise SessionError(f"{part.path} alone: expected at least two sessions of one job")
            raise SessionError(
                f"{part.path} ran at another time than the others; expected sessions of one run of the job"
            )


def _job(member: MemberInfo) -> tuple[str, int]:
    """What all members of a job have in common: its id, else the number of its tasks; an elastic job changes that."""
    return (member.job_id, 0) if member.job_id else ("", member.tasks)


def _apart(one: JoinedSession, other: JoinedSession) -> bool:
    """Whether one of two sessions began when the other had ended, as incarnations do."""
    (begin, end), (later, last) = sorted((one.span, other.span))
    boots = {one.manifest.host.boot_id, other.manifest.host.boot_id}
    slack = 0 if len(boots) == 1 else min(CLOCKS_NS, (end - begin) // 2, (last - later) // 2)
    return later >= end - slack


def _folder(part: JoinedSession, taken: set[str]) -> str:
    """A name that says which task it is, with characters that a folder may have."""
    stem = part.members[0].name if len(part.members) == 1 else part.path.name.removesuffix(layout.SUFFIX)
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in stem) or "member"
    names = (f"{stem}{'' if n == 1 else f'-{n}'}{layout.SUFFIX}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _place(source: Path, target: Path) -> None:
    """Put a session's files into a new folder; the same files, if the file system can."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        bundle.unpack(source, target)
        return
    for name in bundle.portable_names(source):
        made = target / name
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / name, made)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source / name, made)


def _manifest(parts: Sequence[JoinedSession], entries: tuple[MergedMember, ...], name: str) -> Manifest:
    from stepscope.model.session.session import HostInfo, Manifest

    first = parts[0].manifest
    begin, end = min(part.span[0] for part in parts), max(part.span[1] for part in parts)
    hosts = {part.manifest.host.boot_id for part in parts}
    codes = [part.manifest.exit_code for part in parts]
    failed = next((code for code in codes if code), None)
    return Manifest(
        stepscope_version=__version__,
        id=uuid.uuid4().hex,
        name=name,
        command=first.command,
        cwd=first.cwd,
        started_unix_ns=begin,
        ended_ns=end - begin,
        exit_code=failed if failed is not None or None in codes else 0,
        mode="merge",
        state="finished",
        host=first.host if len(hosts) == 1 else HostInfo(),
        origin=first.origin,
        signals=tuple(sorted({signal for part in parts for signal in part.manifest.signals})),
        diagnostics=tuple(_diagnostics(parts)),
        members=entries,
    )


def _diagnostics(parts: Sequence[JoinedSession]) -> Iterator[Diagnostic]:
    one = max(parts, key=lambda part: part.span).members[0]
    there = {member.name for part in parts for member in part.members}
    missing = [name for name in one.names if name not in there]
    if missing:
        more = f" and {len(missing) - MOST_NAMES} more" if len(missing) > MOST_NAMES else ""
        text = f"{', '.join(missing[:MOST_NAMES])}{more} of the job's {len(one.names)} tasks have no session here"
        yield Diagnostic(code=MISSING, text=text)
    yield from _broken_off(parts)
    if not one.job_id:
        text = f"{one.launcher} gives a job no id that is known: numbers of tasks and times alone say that it is one"
        yield Diagnostic(code=UNKNOWN_JOB, text=text)


def _broken_off(parts: Sequence[JoinedSession]) -> Iterator[Diagnostic]:
    """Tasks that failed or were killed before others had ended, or as the last where others ended well: but for
    parameter servers, which serve until they are killed.
    """
    last = max(part.span[1] for part in parts)
    for part in parts:
        how = failures.of(part.manifest)
        early = last - part.span[1]
        serves = all(member.role == SERVER for member in part.members)
        if how and early <= 0 and not serves and any(not failures.of(other.manifest) for other in parts):
            yield Diagnostic(code=BROKEN_OFF, text=f"{part.names} {how}, when the others had ended")
        if how and early > 0:
            died = part.manifest.state == "recovered"  # when, only its newest record tells
            when = f": nothing was recorded of the last {format_ns(early)} of the others" if died else ""
            when = when or f", {format_ns(early)} before the last of the others ended"
            yield Diagnostic(code=BROKEN_OFF, text=f"{part.names} {how}{when}")
