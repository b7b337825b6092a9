"""Distinguishes sessions from other folders by their content: they are evidence, which only a recording may change.

Web projects have a ``manifest.json`` too, so the content decides, never a name. Damaged sessions are sessions.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from stepscope.tables import layout

MARK = b'"stepscope_version"'
"""Key in the first lines of every manifest. Source: ``model.session.session.Manifest``, since schema 1."""
_READ_BYTES = 4096


def is_session(folder: Path) -> bool:
    """Whether a folder holds a manifest that stepscope wrote."""
    try:
        with (folder / layout.MANIFEST).open("rb") as stream:
            return MARK in stream.read(_READ_BYTES)
    except OSError:
        return False


def session_around(path: Path) -> Path | None:
    """The session that a path is, or is in, after following its links; None for anything else."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        return None
    return next((folder for folder in (real, *real.parents) if is_session(folder)), None)


def leads_in(path: Path) -> bool:
    """Whether a folder is a session, or a link leads into one."""
    return session_around(path) is not None if path.is_symlink() else is_session(path)


def is_packed(path: Path) -> bool:
    """Whether a file is a session packed by `stepscope pack`."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) != b"PK":
                return False
        with zipfile.ZipFile(path) as archive, archive.open(layout.MANIFEST) as manifest:
            return MARK in manifest.read(_READ_BYTES)
    except (OSError, KeyError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
        return False
