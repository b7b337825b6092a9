"""Parts in a folder that hosts share."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from stepscope.sessions.gathering.target import MAX_NAMES, NAME, PART_BYTES, RefusedError, checked
from stepscope.tables import layout
from stepscope.tables.errors import TargetError

if TYPE_CHECKING:
    from pathlib import Path


_FINAL = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.ENOENT})
"""Errors that stay; others may pass on a network file system."""
_SESSIONS = 2
"""Depth of JOB/SESSION."""


class FolderTarget:
    """A folder; renaming commits a part."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is made with the first part."""
        self.folder = folder

    def put(self, name: str, data: bytes) -> None:
        """Store a part."""
        path = self.folder / checked(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            layout.write_atomic(path, data)
        except OSError as error:
            kind = RefusedError if error.errno in _FINAL else TargetError
            raise kind(f"{self.folder}: {error.strerror or error}") from error

    def get(self, name: str) -> bytes:
        """The content of a part."""
        try:
            with (self.folder / checked(name)).open("rb") as stream:
                data = stream.read(PART_BYTES + 1)
        except OSError as error:
            raise TargetError(f"{self.folder / name}: {error.strerror or error}") from error
        if len(data) > PART_BYTES:
            raise TargetError(f"{self.folder / name} is larger than a part")
        return data

    def names(self) -> list[str]:
        """The names of all parts."""
        if not self.folder.is_dir():
            raise TargetError(f"{self.folder} is no folder; expected one that sessions were gathered in")
        found: list[str] = []
        for where, folders, files in os.walk(self.folder):
            relative = os.path.relpath(where, self.folder)
            depth = 0 if relative == os.curdir else relative.count(os.sep) + 1
            if depth == _SESSIONS:
                folders.clear()
                found += [name for file in files if NAME.fullmatch(name := f"{relative.replace(os.sep, '/')}/{file}")]
            if len(found) > MAX_NAMES:
                raise TargetError(f"{self.folder} holds more than {MAX_NAMES:,} parts")
        return sorted(found)
