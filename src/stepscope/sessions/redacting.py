"""The use case ``pack --redact``: a session as one file that can be given to others."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from stepscope.diagnosis import analyze
from stepscope.launcher import scratch
from stepscope.model.session import clock_domain
from stepscope.sessions import bundle as session_bundle
from stepscope.sessions import merge
from stepscope.store import bundle, pseudonyms, redaction
from stepscope.store.manifests import read_manifest
from stepscope.tables import layout
from stepscope.tables.errors import SessionError
from stepscope.tables.findings import Diagnostic
from stepscope.wire import sessions_folder

KEY = "pseudonyms.key"


def pack(session: Path, target: Path | None = None) -> tuple[Path, int, list[str]]:
    """Pack a copy in which pseudonyms stand for paths, names and arguments; without sources and with new reports.

    Returns:
        its path, its size in bytes, and the names of files that were left out.

    Raises:
        SessionError: there is no session, it cannot be read, the target exists, or the copy still holds a hidden word.
    """
    if not layout.is_session(session):
        raise SessionError(f"{session}: no such session; expected a NAME{layout.SUFFIX} directory")
    session_bundle.complete(session)
    names = pseudonyms.Pseudonyms(_key())
    stem = names.of(session.name.removesuffix(layout.SUFFIX))
    if target is None:
        target = session.absolute().with_name(f"redacted-{stem}{layout.PACKED_SUFFIX}")
    with tempfile.TemporaryDirectory(prefix=scratch.prefix("redact")) as folder:
        copied = Path(folder) / f"{stem}{layout.SUFFIX}"
        redaction.learn(session, names)
        joint = (session / layout.MEMBERS).is_dir()
        left_out = (_copy_joint if joint else redaction.copy)(session, copied, names)
        analyze.write_reports(copied)
        for name, words in redaction.found_again(copied, names.left, pseudonyms.words_of).items():
            raise SessionError(f"not packed: {name} of the redacted copy still holds {', '.join(sorted(words)[:3])}")
        return target, bundle.pack(copied, target), left_out


def _copy_joint(session: Path, target: Path, names: pseudonyms.Pseudonyms) -> list[str]:
    """Redacted copies of a joint session's members, joined again; their clocks are compared as before."""
    joint = read_manifest(session)
    folders = merge.folders_of(session, joint)
    for host in (read_manifest(folder).host for folder in folders):
        copied = clock_domain.key(names.text(host.boot_id), names.text(host.time_namespace))
        names.domains[clock_domain.key(host.boot_id, host.time_namespace)] = copied
    copies, left_out = [], []
    for folder in folders:
        name = names.of(folder.name.removesuffix(layout.SUFFIX)) + layout.SUFFIX
        copies.append(target.parent / layout.MEMBERS / name)
        left_out += [f"{folder.name}/{name}" for name in redaction.copy(folder, copies[-1], names)]
    notes = [Diagnostic(code=note.code, text=names.text(note.text)) for note in joint.diagnostics]
    merge.merge(copies, target, joined_by=joint.joined_by, gathered=True, notes=notes)
    return left_out


def _key() -> bytes:
    """The user's key for pseudonyms: made once, so that sessions packed at different times can be compared."""
    path = Path(sessions_folder.default()).parent / KEY
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secrets.token_bytes(32))
    except FileExistsError:
        pass
    except OSError:  # no home: the pseudonyms of this pack are of no other
        return secrets.token_bytes(32)
    return path.read_bytes() or secrets.token_bytes(32)
