"""Tells sessions from other folders by what they hold: they are evidence, which nothing but a recording may change.

Web projects have a ``manifest.json`` too, so that its content counts, and never a name. Damaged sessions are sessions.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from stepscope.store import layout

MARK = b'"stepscope_version"'
"""A key of each manifest, in the first lines of it. Source: ``model.session.session.Manifest``, since schema 1."""
_READ_BYTES = 4096


def is_session(folder: Path) -> bool:
    """Whether a folder holds a manifest that stepscope wrote."""
    try:
        with (folder / layout.MANIFEST).open("rb") as stream:
            return MARK in stream.read(_READ_BYTES)
    except OSError:
        return False


def session_around(path: Path) -> Path | None:
    """The session that a path is, or lies in, once its links are followed; None for anything else."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        return None
    return next((folder for folder in (real, *real.parents) if is_session(folder)), None)


def leads_in(path: Path) -> bool:
    """Whether a folder is a session, or a link leads into one."""
    return session_around(path) is not None if path.is_symlink() else is_session(path)


def is_packed(path: Path) -> bool:
    """Whether a file is a session that `stepscope pack` made one file of."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) != b"PK":
                return False
        with zipfile.ZipFile(path) as archive, archive.open(layout.MANIFEST) as manifest:
            return MARK in manifest.read(_READ_BYTES)
    except (OSError, KeyError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
        return False
