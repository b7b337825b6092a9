"""Temporary folders of our commands and servers: names say whose they are, so that what a killed one left is swept."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from stepscope.launcher import rundir
from stepscope.native import process_stat

_NAME = re.compile(r"stepscope-(?:against|fix|gather|pack|redact|timelines)-(\d+)-(\d+)-(\d+)-\w+")


def prefix(what: str) -> str:
    """Begin of such a folder's name, for ``tempfile``; ``what``: against, fix, gather, pack, redact or timelines."""
    return f"stepscope-{what}-{os.getpid()}-{process_stat.start_ticks(os.getpid())}-{_namespace()}-"


def sweep() -> None:
    """Remove this user's folders whose process is gone."""
    for place in {Path(tempfile.gettempdir()), *rundir.temporary_directories()}:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            found = _NAME.fullmatch(name)
            if found is None or int(found[3]) != _namespace() or process_stat.alive(int(found[1]), int(found[2])):
                continue
            if _is_own(place / name):
                _forget_worktrees(place / name)
                shutil.rmtree(place / name, ignore_errors=True)


def _namespace() -> int:
    """Number of this process's pid namespace: in another one, a pid says nothing."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _is_own(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
    except OSError:
        return False


def _forget_worktrees(folder: Path) -> None:
    """Remove what repositories know of their worktrees in a folder (``whatif --against COMMIT``)."""
    for link in folder.glob("*/.git"):
        try:
            entry = Path(link.read_text("utf-8").removeprefix("gitdir:").strip())
            ours = entry.parent.name == "worktrees" and (entry / "gitdir").read_text("utf-8").strip() == str(link)
        except (OSError, ValueError):
            continue
        if ours:
            shutil.rmtree(entry, ignore_errors=True)
