"""The log: JSON lines, appended by the agent, for everything of variable length and low rate.

Every line is an object with ``t`` (its type) and, where a moment matters, ``at`` (CLOCK_MONOTONIC ns). The types
and their fields are the tagged structs of ``stepscope.model.events``; the agent writes them as plain dicts, a
contract test decodes what it writes. Lines are written with one ``os.write`` on an O_APPEND descriptor, so they
survive a SIGKILL of the job whole. When a file has grown to ``ROTATE_BYTES`` the writer goes on in the next one;
the reader deletes a file that it has made durable and that has a successor.
"""

from __future__ import annotations

import json
import os

ROTATE_BYTES = 8 << 20
MAX_FILES = 64
"""Unread files kept at most (512 MB); beyond it lines are dropped and counted."""


def log_name(index: int) -> str:
    """File name of the index-th log of a process."""
    return "log-%04d.jsonl" % index


class LogWriter:
    """The job's end of the log. Not locked: ``os.write`` of one line is atomic enough under O_APPEND."""

    def __init__(self, folder: str) -> None:
        """Open the first file in ``folder``, which exists."""
        self.folder = folder
        self.index = 1
        self.lost = 0
        self._size = 0
        self._fd = self._open()

    def _open(self) -> int:
        path = os.path.join(self.folder, log_name(self.index))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, line: dict) -> None:  # type: ignore[type-arg]
        """Append one line; a failure (full disk) is counted in ``lost``, never raised."""
        try:
            data = json.dumps(line, separators=(",", ":"), default=str).encode("utf-8", "backslashreplace") + b"\n"
            if self._size > ROTATE_BYTES:
                self._rotate()
            if os.write(self._fd, data) != len(data):
                self.lost += 1
            self._size += len(data)
        except (OSError, ValueError, TypeError):
            self.lost += 1

    def _rotate(self) -> None:
        oldest = os.path.join(self.folder, log_name(max(1, self.index - MAX_FILES)))
        if self.index > MAX_FILES and os.path.exists(oldest):
            raise OSError("the log is not being read")
        self.index += 1
        old, self._fd = self._fd, self._open()
        os.close(old)
        self._size = 0

    def close(self) -> None:
        """Close the descriptor; for a forked child that leaves its parent's log alone."""
        try:
            os.close(self._fd)
        except OSError:
            self.lost += 1
