"""Deletes a session for ever, as its user asks for by name."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from stepscope.model.api.rest_api import SessionBrief
    from stepscope.server.session_catalogue import ListedSession


def delete(entry: ListedSession, brief: SessionBrief, name: str) -> None:
    """Delete the folder or the file of a session.

    Args:
        entry: the session.
        brief: how the list shows it.
        name: the name that the user has confirmed.

    Raises:
        UsageError: it is another name.
        CaptureError: its job runs, it is no session of this user, or the file system refuses.
    """
    if name != brief.name:
        raise UsageError(f"the session is called {brief.name}, not {name}; nothing was deleted")
    if entry.job is not None or brief.state == "running":
        raise CaptureError("its job is running; it can be deleted after the job has ended")
    path = entry.path
    try:
        if path.is_symlink() or path.lstat().st_uid != os.getuid():
            raise CaptureError(f"{brief.path}: it belongs to somebody else; nothing was deleted")
        if path.is_file():
            path.unlink()
            return
        if not layout.is_session(path):
            raise CaptureError(f"{brief.path}: it is no session any more; nothing was deleted")
        gone = path.with_name(f".{path.name}.deleted-{os.getpid()}")
        path.rename(gone)  # at once out of all lists, however long it takes
        shutil.rmtree(gone)
    except OSError as error:
        raise CaptureError(f"{brief.path}: {error.strerror}; it may be deleted in part") from error
