"""What a user has written to sessions: a name, tags, a note. Kept in the user's own folder, not in the sessions.

A session may belong to somebody else, be packed, or be served from a disk that is read-only; its id stays the same when
it is moved or packed (decision 0073).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from stepscope.model.api.rest_api import SessionLabel
from stepscope.tables.errors import UsageError
from stepscope.tables.layout import write_atomic
from stepscope.wire import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LABELS = 20_000
MAX_BYTES = 64 << 20
NAME = "labels.json"
_LABELS = msgspec.json.Decoder(dict[str, SessionLabel])
"""Created at import, by one thread (see ``launcher.jobs``)."""


def default_file() -> Path:
    """Next to the folder of ``enable``'s sessions."""
    return Path(sessions_folder.default()).parent / NAME


class SessionLabels:
    """The labels of all sessions, by their ids."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: where they are; None: in the user's state folder."""
        self._file = file or default_file()
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, SessionLabel] = {}
        self._lock = Lock()

    def of(self, identity: str) -> SessionLabel:
        """The label of a session; an empty one if it has none."""
        with self._lock:
            self._read()
            return self._known.get(identity, SessionLabel())

    def set(self, identity: str, label: SessionLabel) -> None:
        """Keep a label; an empty one is dropped.

        Raises:
            UsageError: it cannot be kept.
        """
        with self._lock, self._alone():
            self._read()
            known = {**self._known, identity: label}
            if label == SessionLabel():
                del known[identity]
            if len(known) > MAX_LABELS:
                raise UsageError(f"{self._file}: {MAX_LABELS} sessions have labels; expected fewer")
            try:
                write_atomic(self._file, msgspec.json.encode(known))
                self._file.chmod(0o600)
            except OSError as error:
                raise UsageError(f"{self._file}: {error.strerror}; expected a folder that can be written") from error
            self._read()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other server writes."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._file.with_name(f".{NAME}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(f"{self._file}: {error.strerror}; expected a folder that can be written") from error
        try:
            _wait_for(fd)
            yield
        finally:
            os.close(fd)

    def _read(self) -> None:
        try:
            about = self._file.stat()
            stamp = (about.st_mtime_ns, about.st_size)
            if stamp == self._stamp or about.st_size > MAX_BYTES:
                return
            self._known, self._stamp = _LABELS.decode(self._file.read_bytes()), stamp
        except (OSError, msgspec.DecodeError):  # none yet, or damaged: what was read last stands
            return


def _wait_for(fd: int) -> None:
    """The lock of a file, until it is closed; where there are none, one server at a time has to do."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(fd, fcntl.LOCK_EX)
