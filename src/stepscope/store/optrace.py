"""Op traces in a session: a folder for each below ``captures/optraces``, written whole or not at all.

    trace.json           where it came from, planes, lines, what was left out, which piece of stats is where
    strings.parquet      text: the texts that metas count through; null for an op's name that the name of its events
                         holds, before a colon and its type
    metas.parquet        kinds of events
    events.parquet       events, a million to a row group
    stats.parquet        stats of events; meta_stats.parquet: of metas. A row group is a piece of one stat

One stat can thus be read without the others, and writing needs no more memory than a few pieces.
``tables.optrace`` explains the columns; times count from the session's start.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.store import tables
from stepscope.store.bundle import DirectoryFiles, FilesInside, PackedFiles
from stepscope.store.optrace_stats import Piece, StatFile, StatWriter, StoredStats
from stepscope.tables import layout, nesting
from stepscope.tables.errors import UPDATE, SessionError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.optrace import Dropped, Events, Line, Metas, OpTrace, Plane, Program, TraceSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stepscope.store.bundle import Files
    from stepscope.tables.optrace import I32
    from stepscope.tables.records import I64

SCHEMA = 2
"""Version of the folder. A reader opens every older one."""
NAME_PATTERN = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")
MAX_HEAD_BYTES = 256 << 20
MAX_FILE_BYTES = 4 << 30
_HEAD, _STRINGS, _METAS, _EVENTS = "trace.json", "strings.parquet", "metas.parquet", "events.parquet"
_STATS, _META_STATS = "stats.parquet", "meta_stats.parquet"
_ROWS = 1 << 20
_DELTA = frozenset({"start_ns", "name", "op_name"})
"""Columns of rising numbers."""
_PLAIN = frozenset({"dur_ns"})
_EVENTS_A_KIND = 8
"""Events per kind below which a dictionary of their kinds is larger than what it saves."""
_TEXT_LEVEL = 9
"""Compression level of strings: names are half of a large model's capture, and are written once."""


Column = npt.NDArray[np.int64] | npt.NDArray[np.int32] | npt.NDArray[np.int16] | npt.NDArray[np.int8]


class TraceHead(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``trace.json``."""

    schema: int = SCHEMA
    worker: str = ""
    """Key of its process; empty if the process was not measured."""
    source: TraceSource
    planes: tuple[Plane, ...] = ()
    lines: tuple[Line, ...] = ()
    programs: tuple[Program, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    stats: tuple[Piece, ...] = ()
    """The row groups of ``stats.parquet``, in order."""
    meta_stats: tuple[Piece, ...] = ()


def write(session: Path, name: str, trace: OpTrace, *, worker: str = "") -> Path:
    """Store a trace in the session directory ``session``; ``name`` (like "ops-001") distinguishes it from the others.

    Raises:
        OSError: no space, or no rights; then nothing is left of it.
        FormatError: the source of its stats is damaged; likewise.
    """
    folder = session / layout.OPTRACES / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        _write_into(temporary, trace, worker)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _write_into(folder: Path, trace: OpTrace, worker: str) -> None:
    events, metas = trace.events, trace.metas
    columns: dict[str, Column] = {
        "start_ns": events.start_ns,
        "dur_ns": events.dur_ns,
        "line": events.line,
        "meta": events.meta,
    }
    if events.dur_rem_ps is not None:
        columns["dur_rem_ps"] = events.dur_rem_ps
    few = len(events) < _EVENTS_A_KIND * len(metas)
    _write_table(folder / _EVENTS, columns, plain=_PLAIN | {"meta"} if few else _PLAIN)
    _write_table(
        folder / _METAS,
        {
            "name": metas.name,
            "op_name": metas.op_name,
            "op_type": metas.op_type,
            "category": metas.category,
            "plane": metas.plane,
        },
    )
    pq.write_table(
        pa.table({"text": pa.array(_texts(trace), pa.string())}),
        folder / _STRINGS,
        compression="zstd",
        compression_level=_TEXT_LEVEL,
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    with StatWriter(folder / _STATS) as stats:
        for column in trace.stats.columns():
            stats.add(column)
    with StatWriter(folder / _META_STATS) as meta_stats:
        for name in trace.stats.meta_names():
            meta_stats.add(trace.stats.of_metas(name))
    head = TraceHead(
        worker=worker,
        source=trace.source,
        planes=trace.planes,
        lines=trace.lines,
        programs=trace.programs,
        dropped=trace.dropped,
        diagnostics=trace.diagnostics,
        stats=tuple(stats.pieces),
        meta_stats=tuple(meta_stats.pieces),
    )
    (folder / _HEAD).write_bytes(msgspec.json.encode(head))


def _texts(trace: OpTrace) -> list[str | None]:
    """The trace's strings, without the op names contained in the names of their events."""
    texts: list[str | None] = list(trace.strings)
    metas = trace.metas
    kept = {0, *metas.name.tolist(), *metas.op_type.tolist()}
    ops = zip(metas.name.tolist(), metas.op_name.tolist(), metas.op_type.tolist(), strict=True)
    for name, op, kind in ops:
        if op not in kept and trace.strings[name] == f"{trace.strings[op]}:{trace.strings[kind]}":
            texts[op] = None
    return texts


def _completed(texts: list[str | None], metas: Metas) -> tuple[str, ...]:
    """The strings with those that ``_texts`` omitted.

    Raises:
        ValueError: one cannot be restored.
    """
    if None in texts:
        for numbers in (metas.name, metas.op_name, metas.op_type):
            _within("text", numbers, len(texts))
        ops = zip(metas.name.tolist(), metas.op_name.tolist(), metas.op_type.tolist(), strict=True)
        for name, op, kind in ops:
            whole, op_type = texts[name], texts[kind]
            if texts[op] is None and whole is not None and op_type is not None:
                texts[op] = whole.removesuffix(f":{op_type}")
    if None in texts:
        raise ValueError(f"text {texts.index(None)} is missing")
    return tuple(str(text) for text in texts)


def _write_table(path: Path, columns: Mapping[str, Column], plain: frozenset[str] = frozenset()) -> None:
    schema = pa.schema([(name, pa.from_numpy_dtype(values.dtype)) for name, values in columns.items()])
    encodings = {name: "DELTA_BINARY_PACKED" for name in columns if name in _DELTA}
    encodings |= {name: "PLAIN" for name in columns if name in plain}
    rows = len(next(iter(columns.values())))
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in columns if name not in encodings],
        column_encoding=encodings or None,
        write_statistics=False,
        write_page_checksum=True,
    ) as writer:
        for first in range(0, rows, _ROWS):
            part = {name: pa.array(values[first : first + _ROWS]) for name, values in columns.items()}
            writer.write_table(pa.table(part, schema=schema))


def load(session: Path, name: str, inside: str = "") -> OpTrace:
    """A trace of the session at ``session``, a directory or a packed file; ``inside``: of its member in that folder.

    Raises:
        SessionError: it is damaged, or a newer stepscope wrote it.
    """
    files: Files = DirectoryFiles(session) if session.is_dir() else PackedFiles(session)
    return read(FilesInside(files, inside.rstrip("/")) if inside else files, name)


def names(files: Files) -> list[str]:
    """The traces of a session, by name."""
    return sorted(name for name in files.folders(layout.OPTRACES) if NAME_PATTERN.fullmatch(name))


def head(files: Files, name: str) -> TraceHead:
    """The description of a trace, without its events.

    Raises:
        SessionError: it is damaged, or a newer stepscope wrote it.
    """
    where = f"{layout.OPTRACES}/{name}/{_HEAD}"
    try:
        with nesting.bounded():
            found = msgspec.json.decode(files.read(where, MAX_HEAD_BYTES), type=TraceHead)
    except (OSError, ValueError) as error:
        raise SessionError(f"{files.where}/{where}: cannot be read: {error}") from error
    if found.schema > SCHEMA:
        raise SessionError(
            f"{files.where}/{where}: schema {found.schema}; this stepscope reads up to {SCHEMA}: {UPDATE}"
        )
    return found


def read(files: Files, name: str) -> OpTrace:
    """A trace; ``files`` must stay open as long as its stats are read.

    Raises:
        SessionError: it is damaged, or a newer stepscope wrote it.
    """
    folder = f"{layout.OPTRACES}/{name}"
    found = head(files, name)

    def content(file: str) -> bytes:
        try:
            return files.read(f"{folder}/{file}", MAX_FILE_BYTES)
        except (OSError, ValueError) as error:
            raise SessionError(f"{files.where}/{folder}/{file}: cannot be read: {error}") from error

    try:
        texts = tables.read_table(content(_STRINGS)).column("text").to_pylist()
        events, metas = _events(_table(content(_EVENTS))), _metas(_table(content(_METAS)))
        trace = OpTrace(
            source=found.source,
            planes=found.planes,
            lines=found.lines,
            events=events,
            metas=metas,
            strings=_completed(texts, metas),
            stats=StoredStats(
                StatFile(content=lambda: content(_STATS), pieces=found.stats, count=len(events)),
                StatFile(content=lambda: content(_META_STATS), pieces=found.meta_stats, count=len(metas)),
            ),
            programs=found.programs,
            dropped=found.dropped,
            diagnostics=found.diagnostics,
        )
        _check(trace)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise SessionError(f"{files.where}/{folder}: damaged: {str(error).splitlines()[0]}") from error
    return trace


def _table(content: bytes) -> dict[str, npt.NDArray[np.generic]]:
    table = tables.read_table(content)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _events(columns: Mapping[str, npt.NDArray[np.generic]]) -> Events:
    rem = columns.get("dur_rem_ps")
    return Events(
        start_ns=columns["start_ns"].astype(np.int64, copy=False),
        dur_ns=columns["dur_ns"].astype(np.int64, copy=False),
        line=columns["line"].astype(np.int32, copy=False),
        meta=columns["meta"].astype(np.int32, copy=False),
        dur_rem_ps=rem.astype(np.int16, copy=False) if rem is not None else None,
    )


def _metas(columns: Mapping[str, npt.NDArray[np.generic]]) -> Metas:
    return Metas(
        name=columns["name"].astype(np.int32, copy=False),
        op_name=columns["op_name"].astype(np.int32, copy=False),
        op_type=columns["op_type"].astype(np.int32, copy=False),
        category=columns["category"].astype(np.int8, copy=False),
        plane=columns["plane"].astype(np.int32, copy=False),
    )


def _check(trace: OpTrace) -> None:
    """Check that every index is within its table.

    Raises:
        ValueError: one is not.
    """
    events, metas = trace.events, trace.metas
    _within("line", events.line, len(trace.lines))
    _within("meta", events.meta, len(metas))
    for name, numbers in (("name", metas.name), ("op_name", metas.op_name), ("op_type", metas.op_type)):
        _within(name, numbers, len(trace.strings))
    _within("plane", metas.plane, len(trace.planes))
    _within("plane of a line", np.array([line.plane for line in trace.lines], np.int64), len(trace.planes))
    bounds = [bound for line in trace.lines for bound in (line.first, line.last)]
    if bounds != sorted(bounds) or bounds[:1] not in ([], [0]) or (bounds or [0])[-1] != len(events):
        raise ValueError(f"its lines do not share out its {len(events)} events")
    if any(line.index != i for i, line in enumerate(trace.lines)):
        raise ValueError("its lines are not in order")


def _within(what: str, numbers: I32 | I64, count: int) -> None:
    if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < count):
        raise ValueError(f"a {what} is {int(numbers.max())}, there are {count}")
