"""Writes a session while the job runs, in segments that are durable one by one.

A segment is a Parquet file that appears under its name when it is complete. Written data are found again by listing the
directory, so that a restarted collector continues where the files end: no journal, nothing twice. This survives the
death of every process, but not a loss of power (no fsync on the job's disk).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.store import graphs, tables
from stepscope.store.segments import MAX_MERGED_BYTES, SegmentFolder
from stepscope.tables import layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.model.log.graph import NodeColumns
    from stepscope.model.session.session import Manifest
    from stepscope.tables.records import RecordTable, Table


class EventRow(NamedTuple):
    """A line of an agent's log as stored. ``at_ns`` since session start."""

    at_ns: int
    type: str
    payload: bytes


class LogPosition(NamedTuple):
    """The durable position in a log: the files before ``file``, and ``offset`` bytes of it."""

    file: int = 1
    offset: int = 0


class SessionWriter:
    """Appends segments to one session directory. One writer at a time."""

    def __init__(self, root: Path, *, max_merged_bytes: int = MAX_MERGED_BYTES) -> None:
        """Write into ``root``, which exists, and continue after its content."""
        self.root = root
        self._max_merged_bytes = max_merged_bytes
        self._segments: dict[tuple[str, str], SegmentFolder] = {}

    def worker_keys(self) -> list[str]:
        """Keys of the workers that have a folder."""
        folder = self.root / layout.WORKERS
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def durable_records(self, key: str) -> int:
        """The number of a worker's records that are handled: index of the first that is not durable."""
        return self._of_worker(key, layout.RECORDS).next()

    def durable_log(self, key: str) -> LogPosition:
        """The durable position of a worker's log, from the newest readable segment of events."""
        for name in reversed(self._of_worker(key, layout.EVENTS).names()):
            try:
                metadata = pq.read_schema(self._folder(key) / name).metadata or {}
                return LogPosition(int(metadata[b"log_file"]), int(metadata[b"log_offset"]))
            except (OSError, ValueError, KeyError):  # cut short by a full disk: the one before it counts
                continue
        return LogPosition()

    def stored_lines(self, key: str) -> list[tuple[str, bytes]]:
        """(type, text) of a worker's durable log lines."""
        lines: list[tuple[str, bytes]] = []
        for name in self._of_worker(key, layout.EVENTS).names():
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
        self._of_worker(key, layout.RECORDS).write(first, last, tables.columns_of(records))

    def write_events(self, key: str, rows: Sequence[EventRow], position: LogPosition) -> None:
        """Make log lines durable, together with the position up to which the log has been read.

        Raises:
            OSError: no space, or no rights.
        """
        columns: dict[str, object] = {
            "at_ns": pa.array([row.at_ns for row in rows], pa.int64()),
            "type": pa.array([row.type for row in rows], pa.string()),
            "payload": pa.array([row.payload for row in rows], pa.binary()),
        }
        metadata = {"log_file": str(position.file), "log_offset": str(position.offset)}
        segments = self._of_worker(key, layout.EVENTS)
        segments.write(segments.next(), segments.next(), columns, metadata)

    def write_graphs(self, key: str, parts: Sequence[NodeColumns]) -> None:
        """Make nodes of a worker's graphs durable; later repetitions do not count.

        Raises:
            OSError: no space, or no rights.
        """
        segments = self._of_worker(key, layout.GRAPHS)
        segments.write(segments.next(), segments.next(), graphs.columns_of(parts))

    def write_table(self, name: str, table: Table) -> None:
        """Append rows to one of the session's tables.

        Raises:
            OSError: no space, or no rights.
        """
        self._write_columns(name, tables.columns_of(table))

    def write_rival_names(self, first: int, names: Sequence[str]) -> None:
        """Append names that ``RivalTable.name`` indexes, from number ``first`` on."""
        self._write_names(layout.RIVAL_NAMES, first, names)

    def rival_names(self) -> int:
        """The number of durable rival names."""
        return self._of_session(layout.RIVAL_NAMES).next()

    def write_resource_names(self, first: int, names: Sequence[str]) -> None:
        """Append names of interfaces, disks and GPUs, from number ``first`` on."""
        self._write_names(layout.RESOURCE_NAMES, first, names)

    def resource_names(self) -> int:
        """The number of durable resource names."""
        return self._of_session(layout.RESOURCE_NAMES).next()

    def _write_names(self, stem: str, first: int, names: Sequence[str]) -> None:
        columns: dict[str, object] = {"index": np.arange(first, first + len(names)), "text": list(names)}
        self._of_session(stem).write(first, first + len(names) - 1, columns)

    def last_cpu_totals(self) -> tuple[int, int, int]:
        """The newest durable totals of CPU time: the job's, the others', the sidecar's. Nanoseconds."""
        names = ("job_cpu_ns", "others_cpu_ns", "own_cpu_ns")
        for name in reversed(self._of_session("host").names()):
            try:
                columns, _ = tables.read_columns(self.root / layout.TABLES / name)
                job, others, own = (int(columns[column][-1].as_py()) for column in names)
            except (OSError, ValueError, KeyError, IndexError):
                continue
            return job, others, own
        return 0, 0, 0

    def _write_columns(self, name: str, columns: dict[str, object]) -> None:
        segments = self._of_session(name)
        segments.write(segments.next(), segments.next(), columns)

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

    def folders(self) -> dict[tuple[str, str], SegmentFolder]:
        """All segments of this session by (worker's key or "", stem), including those of earlier writers."""
        for key in self.worker_keys():
            for stem in (layout.RECORDS, layout.EVENTS):
                self._of_worker(key, stem)
        return dict(self._segments)

    def _folder(self, key: str) -> Path:
        return self.root / layout.WORKERS / key

    def _of_worker(self, key: str, stem: str) -> SegmentFolder:
        if (key, stem) not in self._segments:
            self._segments[key, stem] = SegmentFolder(self._folder(key), stem, self._max_merged_bytes)
        return self._segments[key, stem]

    def _of_session(self, stem: str) -> SegmentFolder:
        if ("", stem) not in self._segments:
            self._segments["", stem] = SegmentFolder(self.root / layout.TABLES, stem, self._max_merged_bytes)
        return self._segments["", stem]
