"""Finds the place of a new session: as given by the user, else next to the job, else where there is room."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher import rundir
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, SessionError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MIN_SESSION_BYTES = 8 << 20


def session_stem(argv: Sequence[str]) -> str:
    """The name of a session after the script that a command line runs."""
    program = os.path.basename(argv[0])
    words = list(argv[1:])
    name = program
    if program.startswith(("python", "pypy")):
        if "-m" in words[:-1]:
            name = words[words.index("-m") + 1].rsplit(".", 1)[-1]
        else:
            name = next((os.path.basename(w) for w in words if w.endswith(".py")), program)
    stem = name.rsplit(".", 1)[0] if name.endswith((".py", ".sh", ".bash", ".exe")) else name
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in stem).strip("-.")
    return safe[:60] or "job"


def claim(argv: Sequence[str], wanted: Path | None) -> tuple[Path, list[str]]:
    """Make the session's directory; if that is impossible, one elsewhere, with a line that says so.

    Raises:
        SessionError: the place was given and is taken.
        CaptureError: there is no place at all.
    """
    stem = f"{session_stem(argv)}-{time.strftime('%m%d-%H%M')}"
    try:
        if wanted is not None:
            wanted = Path(os.path.abspath(wanted))
            wanted.parent.mkdir(parents=True, exist_ok=True)
            layout.claim(wanted)
            _check_writable(wanted)
            return wanted, []
        return _claim_free_name(Path.cwd(), stem), []
    except OSError as error:
        place = wanted or "the current directory"
        why = error.strerror or str(error)
    for folder in sorted(rundir.temporary_directories(), key=_outlives):
        try:
            path = _claim_free_name(folder, stem)
        except OSError:
            continue
        return path, [f"{place} cannot hold a session ({why}): it is {path}"]
    raise CaptureError(f"{place} cannot store a session ({why}), and neither can a temporary directory; set TMPDIR")


def claim_in(folder: Path, argv: Sequence[str]) -> Path:
    """Make a session's directory in ``folder``, named after the command.

    Raises:
        OSError: it cannot hold one.
        SessionError: too many of that name.
    """
    return _claim_free_name(folder, f"{session_stem(argv)}-{time.strftime('%m%d-%H%M')}")


def _outlives(folder: Path) -> int:
    """Rank of a folder: the user's choice first; then by lifetime of files: until cleaned up, until reboot, until
    memory is short.
    """
    if str(folder) == os.environ.get("TMPDIR"):
        return 0
    return {"/var/tmp": 1, "/tmp": 2}.get(str(folder), 3)  # noqa: S108 - a session gets a directory of its own


def _claim_free_name(folder: Path, stem: str) -> Path:
    for number in range(1, 1000):
        suffix = f"-{number}" if number > 1 else ""
        path = folder / f"{stem}{suffix}{layout.SUFFIX}"
        try:
            path.mkdir(mode=0o755)
        except FileExistsError:
            continue
        _check_writable(path)
        return path
    raise SessionError(f"{folder}: there are already a thousand sessions {stem}*; choose another path with --session")


def _check_writable(path: Path) -> None:
    """Raise OSError if the start of a session does not fit; remove what was made."""
    try:
        info = os.statvfs(path)
        if info.f_bavail * info.f_frsize < _MIN_SESSION_BYTES:
            _raise_full(info.f_bavail * info.f_frsize)
        layout.write_atomic(path / ".probe", b"x" * 4096)
        (path / ".probe").unlink()
    except OSError:
        path.rmdir()
        raise


def _raise_full(free_bytes: int) -> None:
    raise OSError(errno.ENOSPC, f"only {free_bytes >> 10} KiB free")
