"""Sends a session to where those of all hosts are gathered, in parts; the last of them says that it is whole.

Parts are numbered, and named after the job, the task and the session: sent again, they are the same.
"""

from __future__ import annotations

import hashlib
import shlex
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.launcher import scratch
from stepscope.sessions import bundle
from stepscope.sessions.gathering import opening
from stepscope.sessions.gathering import target as targets
from stepscope.sessions.gathering.gathered import COMPLETE, GatheredSession, SentPart
from stepscope.sessions.gathering.in_time import in_time
from stepscope.tables import layout
from stepscope.tables.errors import StepscopeError
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.model.session.session import Manifest
    from stepscope.sessions.gathering.target import Target

TRIES = 5
NOT_GATHERED = "gathering"
"""Where a session of ``enable`` could not be sent, in the trouble file of its folder."""
PAUSE_S = 0.5
"""Time before a part is sent again, doubled with each try: a server that is started again is back within seconds."""


def send(session: Path, place: Target) -> GatheredSession:
    """Send a session. Return what was sent.

    Raises:
        SessionError: the session cannot be read, or is still written.
        TargetError: the place does not take it.
        OSError: there is no room to pack it.
    """
    from stepscope.store.manifests import read_manifest

    with tempfile.TemporaryDirectory(prefix=scratch.prefix("gather")) as folder:
        spool = Path(folder) / f"session{layout.PACKED_SUFFIX}"
        bundle.pack(session, spool)
        manifest = read_manifest(session)
        stem = f"{_job(manifest)}/{_stem(manifest)}-{_safe(manifest.id)}"
        whole = hashlib.sha256()
        parts: list[SentPart] = []
        with spool.open("rb") as stream:
            while data := stream.read(targets.PART_BYTES):
                whole.update(data)
                part = SentPart(
                    name=f"part-{len(parts) + 1:06d}", bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
                )
                put(place, f"{stem}/{part.name}", data)
                parts.append(part)
        about = GatheredSession(
            id=manifest.id,
            job=_job(manifest),
            names=tuple(sorted(worker.member.name for worker in manifest.workers if worker.member is not None)),
            started_unix_ns=manifest.started_unix_ns,
            ended_ns=manifest.ended_ns,
            host=manifest.host.name,
            sha256=whole.hexdigest(),
            parts=tuple(parts),
        )
        put(place, f"{stem}/{COMPLETE}", msgspec.json.encode(about))
    return about


def outcome(
    session: Path, url: str, key_file: Path | None, shown: Callable[[Path], str], *, ca_file: Path | None = None
) -> tuple[bool, str]:
    """Send a session within a minute; return whether it arrived, and one line that says so. Never raises."""
    authorities = targets.authorities(url, ca_file)  # they may be for where the parts of a fleet go
    proof = (("--key-file", key_file), ("--ca-file", authorities))
    options = "".join(f" {name} {shlex.quote(str(file))}" for name, file in proof if file is not None)
    again = f"stepscope gather send {shlex.quote(shown(session))} --to {shlex.quote(url)}{options}"

    def work() -> str:
        sent = send(session, opening.opened(url, key_file, authorities))
        size = format_bytes(sum(part.bytes for part in sent.parts))
        return f"{size} gathered at {url}; when all are there: stepscope merge {shlex.quote(url)}{options}"

    arrived, line = in_time(work, url)
    return arrived, line if arrived else f"not gathered: {line}; the session is here; send it later: {again}"


def put(place: Target, name: str, data: bytes) -> None:
    """Store a part; again if the place may be there in a moment.

    Raises:
        TargetError: it does not take it.
    """
    for number in range(1, TRIES + 1):
        try:
            place.put(name, data)
        except StepscopeError as error:
            if number == TRIES or isinstance(error, targets.RefusedError):
                raise
            time.sleep(PAUSE_S * 2 ** (number - 1))
        else:
            return


def _job(manifest: Manifest) -> str:
    """Folder of the job: its id, or that of the only session it has."""
    known = [worker.member.job_id for worker in manifest.workers if worker.member is not None and worker.member.job_id]
    return _safe(known[0] if known else f"alone-{manifest.id}")


def _stem(manifest: Manifest) -> str:
    members = [worker.member for worker in manifest.workers if worker.member is not None]
    return _safe(members[0].name if len(members) == 1 else manifest.name)


def _safe(text: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in text)
    return plain[:50] or "job"
