"""Stores copies of the user's own source files that the session names, so that sources accompany it.

Bounded (200 files of 1 MB), masked, never a framework's, an interpreter's or an installed package's file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher.mask import mask_source
from stepscope.native.user_files import is_user_file
from stepscope.tables import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepscope.store.writer import SessionWriter

MAX_FILES = 200
MAX_BYTES = 1_000_000
_INDEX = layout.SOURCES_INDEX.rsplit("/", 1)[1]


class SourceCopies:
    """The copies of one session. Each file is copied once, soon after a record has named it: a later edit is not what
    ran.
    """

    def __init__(self, writer: SessionWriter, replaced: Mapping[str, str] | None = None) -> None:
        """Continue with the copies that an earlier sidecar made; ``replaced``: files whose content is in another."""
        self._writer = writer
        self._replaced = replaced or {}
        self._copied = _copied(writer.root)
        self._problems: dict[str, str] = {}

    def store(self, names: Iterable[str], cwd: str) -> None:
        """Copy files that have no copy yet.

        Args:
            names: files that records and log lines name.
            cwd: the job's working directory: files below it come first.

        Raises:
            OSError: no space, or no rights.
        """
        fresh = {n for n in names if n not in self._copied and n not in self._problems and is_user_file(n)}
        before = len(self._copied)
        for name in sorted(fresh, key=lambda n: (not n.startswith(cwd + "/"), n)):
            self._copy(name)
        if len(self._copied) > before:
            index = [{"path": name, "file": file} for name, file in self._copied.items()]
            self._writer.write_source(_INDEX, json.dumps({"files": index}, indent=1).encode())

    def _copy(self, name: str) -> None:
        if len(self._copied) >= MAX_FILES:
            self._problems[name] = ""
            return
        try:
            path = Path(self._replaced.get(os.path.realpath(name), name))
            if not path.is_file():
                return
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            self._problems[name] = f"{name} was not stored: {error.strerror}"
            return
        if len(data) > MAX_BYTES:
            self._problems[name] = f"{name} was not stored: larger than {MAX_BYTES} bytes"
            return
        file = f"{len(self._copied):03d}-{_safe(Path(name).name)}"
        self._writer.write_source(file, mask_source(data.decode("utf-8", "replace")).encode())
        self._copied[name] = file

    def problems(self) -> list[str]:
        """Lines about files without a copy."""
        too_many = sum(not text for text in self._problems.values())
        lines = [text for text in self._problems.values() if text]
        if too_many:
            every = too_many + len(self._copied)
            lines.insert(0, f"{too_many} of {every} source files were not stored: {MAX_FILES} are kept")
        return lines


def _copied(session: Path) -> dict[str, str]:
    """File names of the copies in a session by path."""
    try:
        index = json.loads((session / layout.SOURCES / _INDEX).read_bytes())
        return {str(entry["path"]): str(entry["file"]) for entry in index["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[-80:]
