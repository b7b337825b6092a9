"""Which earlier session a session is the next attempt of: schedulers start failed jobs again, and say so nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.store.manifests import read_manifest
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stepscope.model.session.session import Manifest

MOST = 200
"""Sessions of the folder that are looked at, those changed last first: a manifest takes a millisecond."""
WITHIN_NS = 24 * 3600 * 10**9
"""Longest time from the end of an attempt to the begin of the next."""


def earlier(path: Path, manifest: Manifest) -> str:
    """The id of the newest session in the same folder with the same command and working directory that had ended, not
    with code 0, within the day before this one began. "": none.
    """
    began = manifest.started_unix_ns
    found = [
        (one.started_unix_ns, one.id)
        for one in _neighbours(path)
        if one.id != manifest.id
        and (one.command, one.cwd) == (manifest.command, manifest.cwd)
        and one.exit_code != 0
        and 0 <= began - (one.started_unix_ns + one.ended_ns) <= WITHIN_NS
    ]
    return max(found, default=(0, ""))[1]


def _neighbours(path: Path) -> Iterator[Manifest]:
    try:
        folders = [one for one in path.absolute().parent.iterdir() if one.name.endswith(layout.SUFFIX)]
        folders.sort(key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
    except OSError:
        return
    for folder in folders[:MOST]:
        try:
            yield read_manifest(folder)
        except SessionError:
            continue
