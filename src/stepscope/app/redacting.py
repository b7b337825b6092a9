"""The use case ``pack --redact``: a session as one file that can be given to others."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from stepscope.app import bundle as app_bundle
from stepscope.app.report import analyze
from stepscope.errors import SessionError
from stepscope.store import bundle, layout, pseudonyms, redaction
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
    if (session / layout.MEMBERS).is_dir():
        raise SessionError(f"{session} is a joint session; expected its members: redact each of them, then merge these")
    app_bundle.complete(session)
    names = pseudonyms.Pseudonyms(_key())
    stem = names.of(session.name.removesuffix(layout.SUFFIX))
    if target is None:
        target = session.absolute().with_name(f"redacted-{stem}{layout.PACKED_SUFFIX}")
    with tempfile.TemporaryDirectory(prefix="stepscope-redact-") as folder:
        copied = Path(folder) / f"{stem}{layout.SUFFIX}"
        left_out = redaction.copy(session, copied, names)
        analyze.write_reports(copied)
        for name, words in redaction.found_again(copied, names.hidden - names.shown, pseudonyms.words_of).items():
            raise SessionError(f"not packed: {name} of the redacted copy still holds {', '.join(sorted(words)[:3])}")
        return target, bundle.pack(copied, target), left_out


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
