"""Reads only a session's manifest. Light-weight: pyarrow is not loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.model.session.session import SCHEMA_VERSION, Manifest
from stepscope.store import bundle
from stepscope.tables import layout, nesting
from stepscope.tables.errors import UPDATE, IncompatibleSessionError, SessionError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 16 << 20


class _Version(msgspec.Struct):
    schema_version: int


_VERSION = msgspec.json.Decoder(_Version)
_MANIFEST = msgspec.json.Decoder(Manifest)
"""Made at import, by one thread (see ``launcher.jobs``)."""


def read_manifest(path: Path) -> Manifest:
    """The manifest of a session, a directory or a packed file.

    Raises:
        SessionError: it is missing or damaged.
        IncompatibleSessionError: a newer stepscope wrote it.
    """
    if path.is_file():
        with bundle.PackedFiles(path) as packed:
            return of(packed)
    return of(bundle.DirectoryFiles(path))


def of(files: bundle.Files) -> Manifest:
    """The manifest among a session's files.

    Raises:
        SessionError: it is missing or damaged.
        IncompatibleSessionError: a newer stepscope wrote it.
    """
    try:
        data = files.read(layout.MANIFEST, MAX_BYTES)
    except FileNotFoundError:
        raise SessionError(
            f"{files.where}: it has no {layout.MANIFEST}; expected a session written by `stepscope run`"
        ) from None
    except (OSError, ValueError) as error:
        raise SessionError(f"{files.where}/{layout.MANIFEST}: cannot be read: {error}") from error
    try:
        with nesting.bounded():
            version = _VERSION.decode(data).schema_version
    except msgspec.DecodeError as error:
        raise _damaged(files, error) from error
    if version > SCHEMA_VERSION:
        raise IncompatibleSessionError(
            f"{files.where}: session schema {version}; this stepscope reads up to {SCHEMA_VERSION}: {UPDATE}"
        )
    try:
        with nesting.bounded():
            return _MANIFEST.decode(data)
    except msgspec.DecodeError as error:
        raise _damaged(files, error) from error


def _damaged(files: bundle.Files, error: msgspec.DecodeError) -> SessionError:
    expected = "expected JSON as `stepscope run` writes it: copy the session again"
    return SessionError(f"damaged: {files.where}/{layout.MANIFEST}: {error}; {expected}")
