"""A process's capture files: checked, moved into the session, and read into its tables."""

from __future__ import annotations

import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stepscope.readers import run_metadata
from stepscope.readers.xplane import xspace
from stepscope.store import optrace
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.model.session.session import CaptureInfo

MAX_FILES = 1_000
MAX_BYTES = 2 << 30
"""Maximum size of all files of a capture; a protobuf message cannot be larger."""
_ENDINGS = {"xplane": ".xplane.pb", "runmetadata": ".runmetadata.pb"}


def take(raw: Path, names: Sequence[str], captures: Path, kind: str) -> tuple[str, ...]:
    """Move files from ``raw`` to ``captures/KIND-NNN...`` and return their names there.

    Raises:
        CaptureError: a file is missing, leads out of ``raw``, is not a regular file, or all are too large.
        OSError: they cannot be moved.
    """
    if not 0 < len(names) <= MAX_FILES:
        raise CaptureError(f"a capture of {len(names)} files; expected 1 to {MAX_FILES}")
    paths = [_checked(raw, name) for name in names]
    size = sum(path.stat().st_size for path in paths)
    if not 0 < size <= MAX_BYTES:
        raise CaptureError(f"a capture of {size} bytes; expected 1 to {MAX_BYTES}")
    number = 1
    while any(captures.glob(f"**/{kind}-{number:03d}*")):
        number += 1
    taken = []
    for part, path in enumerate(paths, 1):
        which = f"-{part:03d}" if len(paths) > 1 else ""
        target = captures / f"{kind}-{number:03d}{which}{_ending(path.name)}"
        path.replace(target)
        taken.append(target.name)
    return tuple(taken)


def read(session: Path, names: Sequence[str], about: CaptureInfo, *, keep_raw: bool) -> tuple[str, ...]:
    """Read files that ``take`` has moved into the session's op traces; return the session's resulting files below
    ``captures/``.

    Traced runs of a session form one op trace. The framework's own files are deleted once read, unless ``keep_raw``.
    Files without a reader stay.

    Raises:
        FormatError: a file is damaged; it stays.
        OSError: the op trace cannot be written; likewise.
    """
    held: list[str] = []
    folder = session / layout.CAPTURES
    runs = [name for name in names if name.endswith(_ENDINGS["runmetadata"])]
    parts = [[name] for name in names if name.endswith(_ENDINGS["xplane"])] + ([runs] if runs else [])
    for part in parts:
        paths = [folder / name for name in part]
        trace = run_metadata.read_files(paths) if part is runs else xspace.read_file(paths[0])
        zero_ns = about.at_ns
        if trace.source.started_unix_ns:
            zero_ns += trace.source.started_unix_ns - about.unix_ns
        stored = optrace.write(session, _stem(part), trace.shifted(zero_ns), worker=about.worker)
        held.append(str(stored.relative_to(folder)))
        if not keep_raw:
            for path in paths:
                path.unlink()
    read_already = {name for part in parts for name in part}
    held += [name for name in names if keep_raw or name not in read_already]
    return tuple(held)


def _stem(part: Sequence[str]) -> str:
    """The name of the op trace of these files: their own, without the distinguishing parts."""
    stem = next(part[0].removesuffix(ending) for ending in _ENDINGS.values() if part[0].endswith(ending))
    return stem.rpartition("-")[0] if len(part) > 1 else stem


def _checked(raw: Path, name: str) -> Path:
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts:
        raise CaptureError(f"the file {name[:200]!r} of a capture is outside its folder")
    path = raw / name
    try:
        regular = stat.S_ISREG(path.lstat().st_mode) and raw.resolve() in path.resolve().parents
    except OSError as error:
        raise CaptureError(f"the file {name[:200]!r} of a capture cannot be read: {error.strerror}") from error
    if not regular:
        raise CaptureError(f"the file {name[:200]!r} of a capture is not a regular file in its folder")
    return path


def _ending(name: str) -> str:
    return next((ending for ending in _ENDINGS.values() if name.endswith(ending)), ".bin")
