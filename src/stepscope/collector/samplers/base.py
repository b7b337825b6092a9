"""Shared parts of samplers: their targets, files that stay open, rows that become tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.tables.records import Table

T = TypeVar("T", bound="Table")

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
"""Length of the clock tick in which /proc/PID/stat counts CPU time."""
_READ_BYTES = 16_384


class Targets(Struct, frozen=True, kw_only=True):
    """The processes of a recording, at one moment."""

    job_pid: int
    """Process id of the job; 0 while unknown."""
    measured: frozenset[int]
    """Processes that are measured: the job's own and its children that load a framework."""
    own: frozenset[int]
    """Processes of stepscope itself."""


class ProcFile:
    """A file of /proc that is kept open: reading it again costs one system call."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str) -> None:
        """Open ``path``; a missing or unreadable file reads as empty."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def read(self) -> bytes:
        """The file as it is now; empty when it is gone."""
        if self._fd < 0:
            return b""
        try:
            return os.pread(self._fd, _READ_BYTES, 0)
        except OSError:
            return b""

    def read_all(self) -> bytes:
        """Like ``read``, for files of any length."""
        parts = []
        at = 0
        while self._fd >= 0:
            try:
                part = os.pread(self._fd, _READ_BYTES, at)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Rows(Generic[T]):
    """Rows that wait to become a table. Values are in the order of the table's fields."""

    def __init__(self, kind: type[T]) -> None:
        """No rows of ``kind``."""
        self._kind = kind
        self._names = list(kind.__struct_fields__)
        self._rows: list[tuple[int, ...]] = []

    def add(self, *values: int) -> None:
        """Keep one row."""
        if len(values) != len(self._names):
            raise ValueError(f"{len(values)} values; {self._kind.__name__} has {len(self._names)} columns")
        self._rows.append(values)

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> T:
        """The rows as a table; they stay until ``clear``."""
        columns = np.array(self._rows, np.int64).reshape(len(self._rows), len(self._names)).T
        return self._kind(**dict(zip(self._names, columns, strict=True)))

    def clear(self) -> None:
        """Drop the rows, which are stored."""
        self._rows.clear()
