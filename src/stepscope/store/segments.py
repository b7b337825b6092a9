"""The segments of one table: which exist, which count, and when small ones are merged.

A segment is named by the first and last number inside (records: their index; log lines and samples: the flush that made
them). One within another's range was merged into it: it does not count, whether or not it has been deleted yet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct

from stepscope.store import tables
from stepscope.tables import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

MERGE_COUNT = 16
"""Number of neighbours of about one size that are merged: a day's session has some dozens of segments instead of
thousands, and each row is rewritten at most four times."""
_SIZE_STEP_BITS = 4
MAX_MERGED_BYTES = 64 << 20


class Segment(Struct, frozen=True, kw_only=True):
    """One file."""

    first: int
    last: int
    name: str


class SizedSegment(Struct, frozen=True, kw_only=True):
    """A segment with its size on disk and its modification time on the file system's clock."""

    segment: Segment
    bytes: int
    at_s: float


def counting(names: Iterable[str], stem: str) -> list[Segment]:
    """The segments of ``stem`` that count, in order."""
    pattern = re.compile(rf"{re.escape(stem)}-(\d+)-(\d+)\.parquet")
    found = [
        Segment(first=int(match[1]), last=int(match[2]), name=match[0])
        for name in names
        if (match := pattern.fullmatch(name)) and int(match[1]) <= int(match[2])
    ]
    found.sort(key=lambda s: (s.first, -s.last))
    kept: list[Segment] = []
    for segment in found:
        if not kept or segment.last > kept[-1].last:
            kept.append(segment)
    return kept


class SegmentFolder:
    """Writes the segments of one table into a folder."""

    def __init__(self, folder: Path, stem: str, max_merged_bytes: int = MAX_MERGED_BYTES) -> None:
        """Continue after the segments in ``folder``; merged ones grow to ``max_merged_bytes``."""
        self._folder = folder
        self._max_merged_bytes = max_merged_bytes
        self._stem = stem
        self._segments = counting((p.name for p in folder.iterdir()), stem) if folder.is_dir() else []
        self._whole = True

    def next(self) -> int:
        """The number after the last one in use."""
        return self._segments[-1].last + 1 if self._segments else 0

    def names(self) -> list[str]:
        """File names of the segments that count, in order."""
        return [segment.name for segment in self._segments]

    def write(self, first: int, last: int, columns: dict[str, object], metadata: dict[str, str] | None = None) -> None:
        """Add a segment, then merge neighbours if enough of them are small.

        Raises:
            OSError: no space, or no rights; then nothing was added.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        name = layout.segment_name(self._stem, first, last)
        tables.write(self._folder / name, columns, metadata)
        self._segments.append(Segment(first=first, last=last, name=name))
        while self._whole and len(self._segments) >= MERGE_COUNT and self._merge_newest():
            continue

    def sizes(self) -> list[SizedSegment]:
        """The segments that count, in order, with the size and modification time of each."""
        found = []
        for segment in self._segments:
            try:
                info = (self._folder / segment.name).stat()
            except OSError:
                continue
            found.append(SizedSegment(segment=segment, bytes=info.st_size, at_s=info.st_mtime))
        return found

    def drop_oldest(self) -> None:
        """Delete the oldest segment, unless it is the only one: numbers continue from the newest."""
        if len(self._segments) > 1:
            (self._folder / self._segments.pop(0).name).unlink(missing_ok=True)

    def keep_rows(self, wanted: Callable[[pa.Table], pa.Table]) -> None:
        """Replace all segments by one with the rows that ``wanted`` selects from each, from the oldest on.

        Raises:
            OSError: no space, or no rights; then nothing was changed.
        """
        if not self._segments:
            return
        parts: list[pa.Table] = []
        metadata: dict[str, str] = {}
        try:
            for segment in self._segments:  # one by one, so that unwanted rows take no memory
                part = tables.read_table(self._folder / segment.name)
                metadata = {k.decode(): v.decode() for k, v in (part.schema.metadata or {}).items()}
                parts.append(wanted(part.replace_schema_metadata(None)))
        except (OSError, ValueError, pa.ArrowException):  # damaged: not changed
            return
        kept = pa.concat_tables(parts).combine_chunks()
        name = layout.segment_name(self._stem, self._segments[0].first, self._segments[-1].last)
        columns = {column: kept.column(column).combine_chunks() for column in kept.column_names}
        tables.write(self._folder / name, columns, metadata)
        old, first, last = self._segments, self._segments[0].first, self._segments[-1].last
        self._segments = [Segment(first=first, last=last, name=name)]
        for segment in old:
            if segment.name != name:
                (self._folder / segment.name).unlink(missing_ok=True)

    def _merge_newest(self) -> bool:
        """Merge the newest segments if they are of about one size; return whether that was done."""
        newest = self._segments[-MERGE_COUNT:]
        try:
            sizes = [(self._folder / segment.name).stat().st_size for segment in newest]
            classes = {size.bit_length() // _SIZE_STEP_BITS for size in sizes}
            if max(classes) - min(classes) > 1 or sum(sizes) > self._max_merged_bytes:
                return False
            parts = [tables.read_table(self._folder / segment.name) for segment in newest]
            merged = pa.concat_tables([part.replace_schema_metadata(None) for part in parts]).combine_chunks()
            metadata = {k.decode(): v.decode() for k, v in (parts[-1].schema.metadata or {}).items()}
            name = layout.segment_name(self._stem, newest[0].first, newest[-1].last)
            columns = {column: merged.column(column).combine_chunks() for column in merged.column_names}
            tables.write(self._folder / name, columns, metadata)
        except (OSError, ValueError, pa.ArrowException):  # damaged, or no space: not changed
            self._whole = False
            return False
        self._segments[-MERGE_COUNT:] = [Segment(first=newest[0].first, last=newest[-1].last, name=name)]
        for segment in newest:
            (self._folder / segment.name).unlink(missing_ok=True)
        return True
