"""Which earlier session a session is the next attempt of: schedulers start failed jobs again, and say so nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.sections import failures
from stepscope.store.manifests import read_manifest
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stepscope.model.session.session import Manifest

MOST = 200
"""Sessions of the folder that are looked at, those changed last first: a manifest takes a millisecond."""
JOBS = frozenset({"run", "enable"})
"""Modes of sessions that hold a whole job: what was attached to, imported, or is a cell, is no attempt."""
WITHIN_NS = 24 * 3600 * 10**9
"""Longest time from the end of an attempt to the begin of the next."""


def earlier(path: Path, manifest: Manifest) -> str:
    """The id of the newest session in the same folder with the same command and working directory that had failed
    within the day before this one began. "": none.
    """
    if manifest.mode not in JOBS:
        return ""
    began = manifest.started_unix_ns
    found = [
        (one.started_unix_ns, one.id)
        for one in _neighbours(path)
        if one.id != manifest.id
        and (one.command, one.cwd) == (manifest.command, manifest.cwd)
        and one.mode in JOBS
        and one.state != "running"
        and _failed(one)
        and 0 <= began - (one.started_unix_ns + one.ended_ns) <= WITHIN_NS
    ]
    return max(found, default=(0, ""))[1]


def _failed(manifest: Manifest) -> bool:
    """Whether a job ended in failure. Of a job of ``enable`` the code is not seen: there its exit handlers tell."""
    if manifest.exit_code is None:
        return not failures.ended_by_itself(manifest)
    return manifest.exit_code != 0


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
