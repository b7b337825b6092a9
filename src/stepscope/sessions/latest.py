"""The session that a command means when none is named: the one that was written last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.tables import layout
from stepscope.tables.errors import SessionError
from stepscope.wire import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Iterable


def latest() -> Path:
    """The newest session of the current folder, relative to it; if it holds none, of those of ``enable``.

    Raises:
        SessionError: there is none.
    """
    folders = [Path(), *map(Path, sessions_folder.candidates(""))]
    for folder in folders:
        found = _newest(folder)
        if found is not None:
            return found
    named = " or ".join(["the current folder", *map(str, folders[1:])])
    raise SessionError(f"no session in {named}; expected SESSION, or one made by: stepscope run train.py")


def _newest(folder: Path) -> Path | None:
    try:
        paths = [path for path in folder.iterdir() if path.name.endswith(layout.SUFFIX)]
    except OSError:
        return None
    return max(_written(paths), default=(0, None))[1]


def _written(paths: Iterable[Path]) -> list[tuple[int, Path]]:
    """Sessions with the time at which each was written last."""
    found = []
    for path in paths:
        try:
            found.append(((path / layout.MANIFEST).stat().st_mtime_ns, path))
        except OSError:  # no session, or deleted meanwhile
            continue
    return found
