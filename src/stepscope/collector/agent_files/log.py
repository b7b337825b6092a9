"""Follows an agent's log: JSON lines in alternating files (``stepscope.wire.log``).

Only whole lines are returned. Of each line only its type and time are decoded here: the store keeps it as written, and
readers of the session decode it with ``model.log.events.decode``.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec
from msgspec import Struct

from stepscope.wire.log import log_name

_READ_BYTES = 4 << 20


class Position(NamedTuple):
    """The position up to which a log was read: all files before ``file``, and ``offset`` bytes of that one."""

    file: int = 1
    offset: int = 0


class LogLine(Struct, frozen=True, kw_only=True):
    """A log line. ``at`` is CLOCK_MONOTONIC nanoseconds, 0 if the line has none."""

    type: str
    at: int
    text: bytes


class _Head(msgspec.Struct, frozen=True):
    t: str
    at: int = 0


_HEAD = msgspec.json.Decoder(_Head)


class LogTail:
    """Reads one process's log from a position onwards."""

    def __init__(self, folder: str, position: Position = Position()) -> None:  # noqa: B008 - immutable
        """Follow the log in ``folder``; everything before ``position`` is durable already."""
        self.folder = folder
        self.position = position
        self.damaged = 0
        """Lines that are not a JSON object with a type, and bytes of a cut last line, counted in lines."""
        self._fd = -1

    def read(self, *, final: bool = False) -> list[LogLine]:
        """The new whole lines; ``final``: the writer is dead, so that a cut line counts as damaged.

        Cost: one ``pread`` when nothing is new.
        """
        lines: list[LogLine] = []
        while True:
            data = self._available()
            end = data.rfind(b"\n") + 1
            if end:
                lines.extend(self._decode(data[:end]))
                self.position = self.position._replace(offset=self.position.offset + end)
                continue
            if len(data) >= _READ_BYTES:
                self.damaged += 1
                self.position = self.position._replace(offset=self.position.offset + len(data))
                continue
            if self._next_file():
                self.damaged += bool(data)
                continue
            if final:
                self.damaged += bool(data)
                self.position = self.position._replace(offset=self.position.offset + len(data))
            return lines

    def _available(self) -> bytes:
        if self._fd < 0:
            try:
                path = os.path.join(self.folder, log_name(self.position.file))
                self._fd = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                return b""
        return os.pread(self._fd, _READ_BYTES, self.position.offset)

    def _next_file(self) -> bool:
        """Continue in the next file, if there is one and this one is exhausted."""
        following = os.path.join(self.folder, log_name(self.position.file + 1))
        if not os.path.exists(following):
            return False
        if b"\n" in self._available():
            return False  # grew in the meantime: read on
        self._close()
        self.position = Position(self.position.file + 1, 0)
        return True

    def _decode(self, data: bytes) -> list[LogLine]:
        lines = []
        for text in data[:-1].split(b"\n"):
            try:
                head = _HEAD.decode(text)
            except (msgspec.DecodeError, RecursionError):
                self.damaged += 1
            else:
                lines.append(LogLine(type=head.t, at=head.at, text=text))
        return lines

    def release(self, durable: Position) -> None:
        """Delete the files before ``durable``, whose content is on disk elsewhere."""
        for index in range(durable.file - 1, 0, -1):
            try:
                os.unlink(os.path.join(self.folder, log_name(index)))
            except FileNotFoundError:
                return

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        """Close the file."""
        self._close()
