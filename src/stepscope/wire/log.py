"""The log: JSON lines, appended by the agent, for all data of variable length and low rate.

Every line is an object with ``t`` (its type) and, if a time matters, ``at`` (CLOCK_MONOTONIC ns). The types and their
fields are the tagged structs of ``stepscope.model.log.events``; the agent writes them as plain dicts, and a contract
test decodes what it writes. Lines are written with one ``os.write`` on an O_APPEND descriptor, so that they survive a
SIGKILL of the job whole. When a file has grown to ``ROTATE_BYTES`` the writer continues in the next one; the reader
deletes a file that it has made durable and that has a successor.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading

from stepscope.wire.env import GAVE_WAY_NAME

ROTATE_BYTES = 8 << 20
"""Size at which a log is continued in its next file; less on a small file system, see ``_rotate_bytes``."""
MAX_FILES = 64
"""Maximum number of unread files (512 MB); beyond it lines are dropped and counted."""
_HIGH_DESCRIPTOR = 900
"""Number from which our descriptors start if the limit allows it: the job's own then have the same numbers as without
us."""


def log_name(index: int) -> str:
    """The file name of the index-th log of a process."""
    return "log-%04d.jsonl" % index


class LogWriter:
    """The job's end of the log. Not locked: ``os.write`` of one line is atomic under O_APPEND.

    The descriptor's number never changes (a new file is put behind it with ``dup2``): another thread can be between
    reading the number and writing to it. A job that closes all descriptors, including ours, may own that number
    afterwards: the file behind it is checked before each write.
    """

    def __init__(self, folder: str) -> None:
        """Open the first file in ``folder``, which exists."""
        self.folder = folder
        self.index = 1
        self.lost = 0
        self._size = 0
        self._torn = False
        self._rotate_bytes = _rotate_bytes(folder)
        self._rotating = threading.Lock()
        self._fd = moved_up(self._open())
        self._files = {_identity(self._fd)}

    def _open(self) -> int:
        path = os.path.join(self.folder, log_name(self.index))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, line: dict[str, object]) -> None:
        """Append one line; a failure (full disk) is counted in ``lost``, never raised."""
        try:
            text = json.dumps(line, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)
            data = text.encode("utf-8", "replace") + b"\n"
            if self._size > self._rotate_bytes:
                self._rotate()
            if _identity(self._fd) not in self._files:
                self._reopen()
            if self._torn:
                data = b"\n" + data
            done = os.write(self._fd, data)
            self._torn = done != len(data)
            self.lost += self._torn
            self._size += done
        except (OSError, ValueError, TypeError, RecursionError):
            self.lost += 1

    def _rotate(self) -> None:
        if not self._rotating.acquire(blocking=False):
            return
        try:
            self._next_file()
        finally:
            self._rotating.release()

    def _next_file(self) -> None:
        oldest = os.path.join(self.folder, log_name(max(1, self.index - MAX_FILES)))
        if self.index > MAX_FILES and os.path.exists(oldest):
            raise OSError("the log is not being read")
        if os.path.exists(os.path.join(self.folder, os.pardir, os.pardir, GAVE_WAY_NAME)):
            raise OSError("the collector has gone")
        self._size = 0
        self.index += 1
        fresh = self._open()
        new = _identity(fresh)
        self._files = {*self._files, new}
        os.dup2(fresh, self._fd, inheritable=False)
        self._files = {new}
        os.close(fresh)

    def _reopen(self) -> None:
        """Leave the number to its new owner if the job closed our descriptor; not if a rotation was in progress."""
        if not self._rotating.acquire(timeout=1):
            raise OSError("another thread rotates the log")
        try:
            if _identity(self._fd) not in self._files:
                self._fd = moved_up(self._open())
                self._files = {_identity(self._fd)}
        finally:
            self._rotating.release()

    def close(self) -> None:
        """Close the descriptor; for a forked child that leaves its parent's log alone."""
        try:
            if _identity(self._fd) in self._files:
                os.close(self._fd)
        except OSError:
            self.lost += 1


def _rotate_bytes(folder: str) -> int:
    """At most a 256th of the file system: ``MAX_FILES`` unread files then take a quarter of it."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return ROTATE_BYTES
    return min(ROTATE_BYTES, space.f_blocks * space.f_frsize // 256)


def _identity(fd: int) -> tuple[int, int]:
    try:
        status = os.fstat(fd)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def moved_up(fd: int) -> int:
    """The same file under a high number, so that the job's own have theirs; ``fd`` itself if the limit forbids it."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
    except OSError:
        return fd
    os.close(fd)
    return high


def _plain(value: object) -> object:
    """A number from a numpy scalar that a caller may have passed, else the name of its type: no user code is run."""
    for method in ("__index__", "__float__"):
        convert = getattr(type(value), method, None)
        if convert is not None:
            return convert(value)
    return "<%s>" % type(value).__name__
