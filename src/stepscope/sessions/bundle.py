"""Use cases on stored sessions: open (completing an unfinished one), pack, unpack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.store import bundle
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from stepscope.model.session.session import Session


def open_session(path: str | Path) -> Session:
    """Read a session; if its job and collector both died, it is completed first.

    Raises:
        SessionError: there is no session at ``path``, or it cannot be read at all.
        IncompatibleSessionError: a newer stepscope wrote it.
    """
    complete(Path(path))
    from stepscope.store import reader

    return reader.read(path)


def complete(path: Path) -> bool:
    """Complete the session directory at ``path`` if it is unfinished and no process is working on it.

    Raises:
        SessionError: the manifest cannot be read.
    """
    if not path.is_dir() or not layout.is_session(path):
        return False
    from stepscope.store.manifests import read_manifest

    if read_manifest(path).state != "running":
        return False
    try:
        from stepscope.collector.recover import recover
    except ImportError:  # another system than Linux: its run is elsewhere
        return False
    return recover(path)


def pack(session: Path, target: Path | None = None) -> tuple[Path, int]:
    """Pack a session into one file; return its path and size in bytes.

    Raises:
        SessionError: there is no session, or the target exists.
    """
    if not session.exists():
        raise SessionError(f"{session}: no such session; expected a NAME{layout.SUFFIX} directory")
    complete(session)
    if target is None:
        target = session.with_name(session.name.removesuffix(layout.SUFFIX) + layout.PACKED_SUFFIX)
    return target, bundle.pack(session, target)


def unpack(packed: Path, target: Path | None = None) -> Path:
    """Unpack a packed file into a session directory; return the directory.

    Raises:
        SessionError: the file is not a packed session, is malicious or damaged, or the target exists.
    """
    if not packed.is_file():
        raise SessionError(f"{packed}: no such file; expected a file written by `stepscope pack`")
    if target is None:
        name = (
            packed.name.removesuffix(layout.PACKED_SUFFIX).removesuffix(layout.ZIP_SUFFIX).removesuffix(layout.SUFFIX)
        )
        target = packed.with_name(name + layout.SUFFIX)
    return bundle.unpack(packed, target)
