"""Spans of a timeline on disk, in a form for partial reading: columns that are mapped, never read whole.

    index.json             lanes, tracks, names, and where in the columns each lane is
    base.COLUMN            start, end, name of every span, lane after lane
    sums.COLUMN            name, count, total, most: of each name that a lane has, its spans, their time, the longest
    EXPONENT.COLUMN        marks of the lanes at the stored bucket 2**EXPONENT ns, lane after lane
    links.COLUMN           out, to and out_kind: places (lane << 32 | row) of linked spans, by the source; in, from and
                           in_kind: the same, by the target
    series.COLUMN          start, end, value of every series, series after series

Not part of a session: a separate cache that is rebuilt if it is gone or of another schema. Columns are plain
little-endian arrays; the index is checked against their sizes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from stepscope.model.api.timeline import LeftOut, SpanName, Timeline, TimelineSeries, TraceRange, Track
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

SCHEMA = 7
INDEX = "index.json"
BASE = "base"
BASE_COLUMNS = {"start": "<i8", "end": "<i8", "name": "<i4"}
MARK_COLUMNS = {
    "start": "<i8",
    "end": "<i8",
    "name": "<i4",
    "count": "<i8",
    "busy": "<i8",
    "longest": "<i8",
    "row": "<i8",
}
WHOLE = -1
"""Level of the spans themselves."""
SUMS = "sums"
SUM_COLUMNS = {"name": "<i4", "count": "<i8", "total": "<i8", "most": "<i8"}
SERIES = "series"
LINKS = "links"
LINK_COLUMNS = ("out", "to", "out_kind", "in", "from", "in_kind")
PLACE_BITS = 32
MAX_INDEX_BYTES = 1 << 30

Number = TypeVar("Number", np.int64, np.int32, np.float64)
I64 = npt.NDArray[np.int64]
Column = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Columns = Mapping[str, Column]


class SeriesColumns(NamedTuple):
    """Values of a series. Shapes: [value], by start, without overlap."""

    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``index.json``."""

    schema: int = SCHEMA
    timeline: Timeline
    names: tuple[SpanName, ...]
    counts: tuple[int, ...]
    """Number of spans of each name."""
    bounds: tuple[int, ...]
    """Start of each lane in the base, and the end of the last."""
    sums_bounds: tuple[int, ...]
    """Start of the sums of each lane, and the end of the last."""
    levels: dict[int, tuple[tuple[int, int, int], ...]]
    """Exponent to (lane, first row, row after the last) of the lanes that it holds."""
    series_bounds: tuple[int, ...] = (0,)
    """Start of each series, and the end of the last."""
    links: int = 0
    """Number of links."""


class Writer:
    """Writes a cache lane by lane, whole or not at all."""

    def __init__(self, folder: Path) -> None:
        """Prepare; nothing is written before ``add``."""
        self._final = folder
        self._folder = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        self._files: dict[str, IO[bytes]] = {}
        self._stack = ExitStack()
        self._bounds = [0]
        self._sums = [0]
        self._levels: dict[int, list[tuple[int, int, int]]] = {}
        self._rows: dict[int, int] = {}
        self._counts = np.zeros(0, np.int64)
        self._series = [0]
        self._links: list[tuple[I64, I64, I64]] = []

    def __enter__(self) -> Self:
        """Make a folder to write into."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, mode=0o700)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove an unfinished cache."""
        self._stack.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def lanes(self) -> int:
        """The number of lanes written."""
        return len(self._bounds) - 1

    @property
    def spans(self) -> int:
        """The number of spans written."""
        return self._bounds[-1]

    def add(self, base: Columns) -> int:
        """Write the spans of the next lane and return its number."""
        self._write(BASE, base, BASE_COLUMNS)
        self._bounds.append(self._bounds[-1] + len(base["start"]))
        counts = self._add_sums(base)
        if len(counts) > len(self._counts):
            self._counts = np.pad(self._counts, (0, len(counts) - len(self._counts)))
        self._counts[: len(counts)] += counts
        return self.lanes - 1

    def _add_sums(self, base: Columns) -> I64:
        """Write the sums of a lane; return its spans by name."""
        name, dur = base["name"], base["end"] - base["start"]
        counts = np.bincount(name)
        total = np.bincount(name, weights=dur).astype(np.int64)
        most = np.zeros(len(counts), np.int64)
        np.maximum.at(most, name, dur)
        names = np.flatnonzero(counts)
        columns = {"name": names, "count": counts[names], "total": total[names], "most": most[names]}
        self._write(SUMS, columns, SUM_COLUMNS)
        self._sums.append(self._sums[-1] + len(names))
        return counts

    def add_level(self, lane: int, exponent: int, marks: Columns) -> None:
        """Write the marks of a lane at one level."""
        self._write(str(exponent), marks, MARK_COLUMNS)
        first = self._rows.get(exponent, 0)
        self._rows[exponent] = first + len(marks["start"])
        self._levels.setdefault(exponent, []).append((lane, first, self._rows[exponent]))

    def add_series(self, columns: SeriesColumns) -> None:
        """Write the values of the next series."""
        self._append(f"{SERIES}.start", np.ascontiguousarray(columns.start, np.int64))
        self._append(f"{SERIES}.end", np.ascontiguousarray(columns.end, np.int64))
        self._append(f"{SERIES}.value", np.ascontiguousarray(columns.value, np.float64))
        self._series.append(self._series[-1] + len(columns.start))

    def add_links(self, source: I64, target: I64, kind: I64) -> None:
        """Add links between spans, by their places; they are written at the end, in order."""
        self._links.append((source, target, kind))

    def _write_links(self) -> int:
        if not self._links:
            return 0
        source, target, kind = (np.concatenate([part[at] for part in self._links]) for at in range(3))
        for near, far, names in ((source, target, LINK_COLUMNS[:3]), (target, source, LINK_COLUMNS[3:])):
            order = np.lexsort((far, near))
            for name, column in zip(names, (near, far, kind), strict=True):
                self._append(f"{LINKS}.{name}", column[order])
        return len(source)

    def _write(self, name: str, columns: Columns, kinds: dict[str, str]) -> None:
        for column, kind in kinds.items():
            self._append(f"{name}.{column}", np.ascontiguousarray(columns[column], np.dtype(kind)))

    def _append(self, key: str, column: npt.NDArray[Number]) -> None:
        if key not in self._files:
            self._files[key] = self._stack.enter_context((self._folder / key).open("wb"))
        column.tofile(self._files[key])

    def finish(
        self,
        timeline: Timeline,
        names: tuple[SpanName, ...],
        *,
        tracks: tuple[Track, ...],
        series: tuple[TimelineSeries, ...],
        left_out: tuple[LeftOut, ...],
        traces: tuple[TraceRange, ...],
    ) -> None:
        """Write the index, and give the cache its name."""
        links = self._write_links()
        self._stack.close()
        counts = np.pad(self._counts, (0, max(0, len(names) - len(self._counts))))
        index = Index(
            timeline=msgspec.structs.replace(
                timeline,
                spans=self.spans,
                names=len(names),
                tracks=tracks,
                series=series,
                left_out=left_out,
                traces=traces,
            ),
            names=names,
            counts=tuple(counts.tolist()),
            bounds=tuple(self._bounds),
            sums_bounds=tuple(self._sums),
            levels={exponent: tuple(lanes) for exponent, lanes in self._levels.items()},
            series_bounds=tuple(self._series),
            links=links,
        )
        (self._folder / INDEX).write_bytes(msgspec.json.encode(index))
        try:
            self._folder.rename(self._final)
        except OSError:  # another process has made the same cache
            if not (self._final / INDEX).is_file():
                raise


class MappedCache:
    """A cache, mapped."""

    def __init__(self, folder: Path) -> None:
        """Open a cache.

        Raises:
            SessionError: it is not a cache, or of another schema.
        """
        self.folder = folder
        try:
            self.index = _index(folder / INDEX)
            self._base = _mapped(folder, BASE, BASE_COLUMNS, self.index.bounds[-1])
            self._sums = _mapped(folder, SUMS, SUM_COLUMNS, self.index.sums_bounds[-1])
            links = self.index.links
            self._links = {n: _column(folder, f"{LINKS}.{n}", np.dtype(np.int64), links) for n in LINK_COLUMNS}
            values = self.index.series_bounds[-1]
            self._series = SeriesColumns(
                _column(folder, f"{SERIES}.start", np.dtype(np.int64), values),
                _column(folder, f"{SERIES}.end", np.dtype(np.int64), values),
                _column(folder, f"{SERIES}.value", np.dtype(np.float64), values),
            )
            self._marks: dict[int, Columns] = {}
            self._places: dict[int, dict[int, tuple[int, int]]] = {}
            for exponent, lanes in self.index.levels.items():
                self._marks[exponent] = _mapped(folder, str(exponent), MARK_COLUMNS, lanes[-1][2])
                for lane, first, last in lanes:
                    self._places.setdefault(lane, {})[exponent] = (first, last)
        except (OSError, ValueError, IndexError) as error:
            raise SessionError(f"{folder}: not a timeline: {error}") from error

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return len(self.index.bounds) - 1

    def base(self, lane: int) -> Columns:
        """The spans of a lane; not copied."""
        rows = slice(self.index.bounds[lane], self.index.bounds[lane + 1])
        return {name: column[rows] for name, column in self._base.items()}

    def sums(self, lane: int) -> Columns:
        """The sums of a lane's spans, by name; not copied."""
        rows = slice(self.index.sums_bounds[lane], self.index.sums_bounds[lane + 1])
        return {name: column[rows] for name, column in self._sums.items()}

    def stored(self, lane: int, exponent: int) -> tuple[int, int, int]:
        """The coarsest stored marks of a lane that are as fine as requested: level, first row, row after the last."""
        found = WHOLE, self.index.bounds[lane], self.index.bounds[lane + 1]
        for level, rows in self._places.get(lane, {}).items():
            if found[0] < level <= exponent:
                found = level, *rows
        return found

    def columns(self, level: int) -> Columns:
        """All lanes at a stored level, or their spans (``WHOLE``)."""
        return self._marks[level] if level != WHOLE else self._base

    def series(self, number: int) -> SeriesColumns:
        """The values of a series; not copied."""
        rows = slice(self.index.series_bounds[number], self.index.series_bounds[number + 1])
        every = self._series
        return SeriesColumns(every.start[rows], every.end[rows], every.value[rows])

    def links(self, lane: int, row: int, *, out: bool) -> list[tuple[int, int, int]]:
        """(lane, row, kind) of the spans that a span led to (``out``), or that led to it."""
        near, far, kind = LINK_COLUMNS[:3] if out else LINK_COLUMNS[3:]
        first, last = np.searchsorted(self._links[near], np.array([0, 1]) + (lane << PLACE_BITS | row)).tolist()
        places, kinds = self._links[far][first:last].tolist(), self._links[kind][first:last].tolist()
        mask = (1 << PLACE_BITS) - 1
        return [(place >> PLACE_BITS, place & mask, what) for place, what in zip(places, kinds, strict=True)]


def _index(path: Path) -> Index:
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise ValueError("its index is too large")
    index = msgspec.json.decode(path.read_bytes(), type=Index)
    if index.schema != SCHEMA:
        raise ValueError(f"schema {index.schema}; expected {SCHEMA}")
    return index


def _mapped(folder: Path, name: str, kinds: dict[str, str], rows: int) -> Columns:
    return {column: _column(folder, f"{name}.{column}", np.dtype(kind), rows) for column, kind in kinds.items()}


def _column(folder: Path, key: str, dtype: np.dtype[Number], rows: int) -> npt.NDArray[Number]:
    if rows == 0:
        return np.empty(0, dtype)
    path = folder / key
    if path.stat().st_size != rows * dtype.itemsize:
        raise ValueError(f"{key} has another length than the index says")
    return np.asarray(np.memmap(path, dtype, mode="r", shape=(rows,)))
