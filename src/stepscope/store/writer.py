"""Writes a session as the job runs: segments that are durable one by one.

A segment is a Parquet file that appears under its name when it is complete. What was written is found again by
listing the directory, so a collector that was killed goes on where the files end: no journal, nothing twice.
Survives the death of every process; not made to survive the loss of power (no fsync on the job's disk).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.store import layout, tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.model.records import RecordTable, Table
    from stepscope.model.session import Manifest


class EventRow(NamedTuple):
    """A line of an agent's log as it is stored. ``at_ns`` since session start."""

    at_ns: int
    type: str
    payload: bytes


class LogPosition(NamedTuple):
    """How much of a log is durable: the files before ``file``, and ``offset`` bytes of it."""

    file: int = 1
    offset: int = 0


class SessionWriter:
    """Appends segments to one session directory. One writer at a time."""

    def __init__(self, root: Path) -> None:
        """Write into ``root``, which exists; goes on after what is there."""
        self.root = root
        self._events: dict[str, int] = {}
        self._tables: dict[str, int] = {}

    def worker_keys(self) -> list[str]:
        """Keys of the workers that have a folder."""
        folder = self.root / layout.WORKERS
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def durable_records(self, key: str) -> int:
        """How many of a worker's records are dealt with: index of the first that is not durable."""
        names = self._names(key)
        return max((int(m[2]) + 1 for n in names if (m := layout.RECORDS_PATTERN.fullmatch(n))), default=0)

    def durable_log(self, key: str) -> LogPosition:
        """How far a worker's log is durable, from the newest readable segment of events."""
        numbers = [int(m[1]) for n in self._names(key) if (m := layout.EVENTS_PATTERN.fullmatch(n))]
        for number in sorted(numbers, reverse=True):
            path = self._folder(key) / layout.events_name(number)
            try:
                metadata = pq.read_schema(path).metadata or {}
                return LogPosition(int(metadata[b"log_file"]), int(metadata[b"log_offset"]))
            except (OSError, ValueError, KeyError):  # cut short by a full disk: the one before it counts
                continue
        return LogPosition()

    def stored_lines(self, key: str) -> list[tuple[str, bytes]]:
        """(type, text) of a worker's durable log lines."""
        lines: list[tuple[str, bytes]] = []
        for name in sorted(n for n in self._names(key) if layout.EVENTS_PATTERN.fullmatch(n)):
            try:
                columns, _ = tables.read_columns(self._folder(key) / name)
                lines.extend(zip(columns["type"].to_pylist(), columns["payload"].to_pylist(), strict=True))
            except (OSError, ValueError, KeyError):
                continue
        return lines

    def write_records(self, key: str, records: RecordTable) -> None:
        """Make records durable; their ``seq`` (index + 1) rises, holes allowed.

        Raises:
            OSError: no space, or no rights.
        """
        first, last = int(records.seq[0]) - 1, int(records.seq[-1]) - 1
        folder = self._made(key)
        tables.write(folder / layout.records_name(first, last), tables.columns_of(records))

    def write_events(self, key: str, rows: Sequence[EventRow], position: LogPosition) -> None:
        """Make log lines durable, together with how far the log is now read.

        Raises:
            OSError: no space, or no rights.
        """
        folder = self._made(key)
        if key not in self._events:
            numbers = [int(m[1]) for n in self._names(key) if (m := layout.EVENTS_PATTERN.fullmatch(n))]
            self._events[key] = max(numbers, default=-1) + 1
        columns = {
            "at_ns": pa.array([row.at_ns for row in rows], pa.int64()),
            "type": pa.array([row.type for row in rows], pa.string()),
            "payload": pa.array([row.payload for row in rows], pa.binary()),
        }
        metadata = {"log_file": str(position.file), "log_offset": str(position.offset)}
        tables.write(folder / layout.events_name(self._events[key]), columns, metadata)
        self._events[key] += 1

    def write_table(self, name: str, table: Table) -> None:
        """Append rows to one of the session's tables.

        Raises:
            OSError: no space, or no rights.
        """
        self._write_columns(name, tables.columns_of(table))

    def write_rival_names(self, first: int, names: Sequence[str]) -> None:
        """Append names that ``RivalTable.name`` counts through, from number ``first`` on."""
        self._write_columns("rival_names", {"index": np.arange(first, first + len(names)), "text": list(names)})

    def rival_names(self) -> int:
        """How many rival names are durable."""
        folder = self.root / layout.TABLES
        count = 0
        for path in folder.glob("rival_names-*.parquet") if folder.is_dir() else ():
            try:
                index = pq.read_table(path, columns=["index"]).column("index")
            except (OSError, ValueError):
                continue
            count = max(count, 1 + max(index.to_pylist(), default=-1))
        return count

    def last_cpu_totals(self) -> tuple[int, int, int]:
        """The newest durable totals of CPU time: the job's, the others', the sidecar's. Nanoseconds."""
        names = ("job_cpu_ns", "others_cpu_ns", "own_cpu_ns")
        folder = self.root / layout.TABLES
        for path in sorted(folder.glob("host-*.parquet"), reverse=True) if folder.is_dir() else ():
            try:
                columns, _ = tables.read_columns(path)
                job, others, own = (int(columns[name][-1].as_py()) for name in names)
            except (OSError, ValueError, KeyError, IndexError):
                continue
            return job, others, own
        return 0, 0, 0

    def _write_columns(self, name: str, columns: dict[str, object]) -> None:
        folder = self.root / layout.TABLES
        folder.mkdir(exist_ok=True)
        if name not in self._tables:
            numbers = [
                int(m[2]) for p in folder.iterdir() if (m := layout.TABLE_PATTERN.fullmatch(p.name)) and m[1] == name
            ]
            self._tables[name] = max(numbers, default=-1) + 1
        tables.write(folder / layout.table_name(name, self._tables[name]), columns)
        self._tables[name] += 1

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest.

        Raises:
            OSError: no space, or no rights.
        """
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        layout.write_atomic(self.root / layout.MANIFEST, data + b"\n")

    def write_source(self, name: str, data: bytes) -> None:
        """Store the copy of a source file (or the index of them) as ``captures/sources/name``."""
        folder = self.root / layout.SOURCES
        folder.mkdir(parents=True, exist_ok=True)
        layout.write_atomic(folder / name, data)

    def _folder(self, key: str) -> Path:
        return self.root / layout.WORKERS / key

    def _made(self, key: str) -> Path:
        folder = self._folder(key)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _names(self, key: str) -> list[str]:
        folder = self._folder(key)
        return [p.name for p in folder.iterdir()] if folder.is_dir() else []
