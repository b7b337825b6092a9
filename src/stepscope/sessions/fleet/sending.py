"""Makes the parts of ended sessions, and sends them from a spool: what cannot be sent now is sent later."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.sessions.gathering.folder_target import FolderTarget
from stepscope.sessions.gathering.in_time import in_time
from stepscope.sessions.gathering.opening import opened
from stepscope.sessions.gathering.sending import put
from stepscope.sessions.gathering.target import authorities
from stepscope.tables.errors import SessionError, TargetError
from stepscope.tables.units import format_bytes, format_number_of
from stepscope.wire import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.fleet.part import Part
    from stepscope.sessions.gathering.target import Target

REPORT = "report.json"
NOT_LEFT = "fleet"
"""Where a part of a session of ``enable`` could not be sent, in the trouble file of its folder."""


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where parts go, and what they may tell."""

    url: str
    key_file: Path | None = None
    ca_file: Path | None = None
    sources: bool = False

    @property
    def spool(self) -> FolderTarget:
        """Parts that wait for this place, of this user; the same folder name elsewhere is another place."""
        place = self.url if "://" in self.url else str(Path(self.url).absolute())
        key = hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return FolderTarget(Path(sessions_folder.default()).parent / "fleet-spool" / key)

    def open(self) -> Target:
        """The place.

        Raises:
            UsageError, TargetError: as ``opening.opened``.
        """
        return opened(self.url, self.key_file, self.ca_file)


def part_of(path: Path, *, sources: bool = False) -> Part:
    """The part of a session.

    Raises:
        SessionError: it cannot be read, still runs, or is one of several members that have their own parts.
    """
    from stepscope.diagnosis.analyze import report_of
    from stepscope.fleet import part
    from stepscope.model.report.report import Report
    from stepscope.sessions import bundle
    from stepscope.sessions.fleet.attempts import earlier

    session = bundle.open_session(path)
    manifest = session.manifest
    if manifest.state == "running":
        raise SessionError(f"{path}: its job still runs; expected an ended one")
    if manifest.members:
        raise SessionError(f"{path}: it is joined of {len(manifest.members)} members; add their own sessions")
    try:
        report = msgspec.json.decode((path / REPORT).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):  # packed, imported, or written by another version
        report = report_of(session)
    return part.of(session, report, restarts=earlier(path, manifest), sources=sources)


def add(paths: Sequence[Path], to: Destination) -> list[str]:
    """Send the parts of sessions and all that waits for the same place; return a line for each session.

    Raises:
        SessionError: one is no ended session; those before it are sent.
        UsageError, TargetError: the place does not take them; they wait in the spool.
    """
    lines = []
    for path in paths:
        made = part_of(path, sources=to.sources)
        to.spool.put(made.name.path, made.data)
        lines.append(f"{path}: {format_bytes(len(made.data))}, {made.name.path}")
    sent = flush(to)
    waited = sent - len(lines)
    if waited > 0:
        were = "was" if waited == 1 else "were"
        lines.append(f"{format_number_of(str(waited), 'parts')} that waited {were} sent, too")
    return lines


def flush(to: Destination) -> int:
    """Send all that waits for a place; return how many parts. A part leaves the spool once the place has it.

    Raises:
        UsageError, TargetError: the place does not take one.
    """
    spool = to.spool
    if not spool.folder.is_dir():
        return 0
    names = spool.names()
    place = to.open() if names else None
    for name in names:
        try:
            data = spool.get(name)
        except TargetError:
            if (spool.folder / name).exists():
                raise
            continue  # another process has sent it
        if place is not None:
            put(place, name, data)
        (spool.folder / name).unlink(missing_ok=True)
    return len(names)


def outcome(session: Path, to: Destination, shown: str) -> tuple[bool, str]:
    """Send the part of a session that has just ended; whether it arrived, and a line that says so. Never raises."""
    to = msgspec.structs.replace(to, ca_file=authorities(to.url, to.ca_file))  # they may be for where sessions go

    def work() -> str:
        made = part_of(session, sources=to.sources)
        to.spool.put(made.name.path, made.data)
        flush(to)
        return f"{format_bytes(len(made.data))} at {to.url}; ask: stepscope fleet jobs {shlex.quote(to.url)}"

    arrived, line = in_time(work, to.url)
    if arrived:
        return True, line
    files = (("--key-file", to.key_file), ("--ca-file", to.ca_file))
    options = "".join(f" {name} {shlex.quote(str(file))}" for name, file in files if file is not None)
    options += " --fleet-sources" if to.sources else ""
    later = f"stepscope fleet add {shlex.quote(shown)} --to {shlex.quote(to.url)}{options}"
    return False, f"not sent: {line}; the next run with --fleet sends it, or: {later}"
