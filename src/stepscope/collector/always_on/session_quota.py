"""Keeps a session that may run for weeks within its share of the disk: the newest data stay, as in a flight recorder.

Records and samples lose their oldest segments. Log lines stay because records refer to them, except those about a
single moment: of these the first of a run and those of the last hour are kept. The manifest states what was dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.tables import layout

if TYPE_CHECKING:
    import pyarrow as pa

    from stepscope.store.segments import SegmentFolder, SizedSegment
    from stepscope.store.writer import SessionWriter

MAX_RECORDS = 4_000_000
"""Maximum number of records of all processes of a session: analysis needs about 130 bytes of memory for each."""
_EVENTS_DIVISOR = 8
"""Divisor of the limit that the log lines may take before they are filtered."""
_PASSING = frozenset({"itermodel", "metric", "child", "batch", "trace", "cost"})
"""Types of lines about one moment; ``trace`` and ``batch`` only if a job makes them endlessly."""
_FIRST_LINES = 5_000
_RECENT_NS = 3_600_000_000_000
_MERGED_DIVISOR = 16


class SessionLimits(Struct, kw_only=True):
    """Limits of one session. ``bytes`` may change while it is written: jobs of one user share a quota."""

    bytes: int
    records: int = MAX_RECORDS

    @property
    def merged_bytes(self) -> int:
        """Size to which segments are merged: they are dropped whole."""
        return max(1 << 20, self.bytes // _MERGED_DIVISOR)


class SessionQuota:
    """Trims one session."""

    def __init__(self, writer: SessionWriter, limits: SessionLimits) -> None:
        """Keep the session of ``writer`` within ``limits``."""
        self.limits = limits
        self.dropped_segments = 0
        self.bytes = 0
        """Size on disk, at the last look."""
        self._writer = writer

    def trim(self, now_ns: int) -> bool:
        """Drop the data over the limits; return whether there were any. ``now_ns`` since session start.

        Raises:
            OSError: no space, or no rights.
        """
        folders = self._writer.folders()
        events = [folder for (_, stem), folder in folders.items() if stem == layout.EVENTS]
        others = {key: folder for key, folder in folders.items() if key[1] != layout.EVENTS}
        if sum(size.bytes for folder in events for size in folder.sizes()) > self.limits.bytes // _EVENTS_DIVISOR:
            for folder in events:
                folder.keep_rows(_Wanted(now_ns - _RECENT_NS))
        lines = sum(size.bytes for folder in events for size in folder.sizes())
        before = self.dropped_segments
        self.bytes = lines + self._drop(others, self.limits.bytes - lines)
        return self.dropped_segments > before

    def _drop(self, folders: dict[tuple[str, str], SegmentFolder], allowed: int) -> int:
        """Drop the oldest segments of all tables until the rest fits; return its size in bytes."""
        held: list[tuple[float, SegmentFolder, SizedSegment, bool]] = []
        for (_, stem), folder in folders.items():
            held += [(size.at_s, folder, size, stem == layout.RECORDS) for size in folder.sizes()]
        held.sort(key=lambda entry: entry[0])
        left = sum(size.bytes for _, _, size, _ in held)
        records = sum(_count(size) for *_, size, is_records in held if is_records)
        for _, folder, size, is_records in held:
            if left <= allowed and (records <= self.limits.records or not is_records):
                continue
            held_now = folder.sizes()
            if held_now[0].segment != size.segment or held_now[-1].segment == size.segment:  # the newest stays
                continue
            folder.drop_oldest()
            self.dropped_segments += 1
            left -= size.bytes
            records -= _count(size) if is_records else 0
        return left


def _count(size: SizedSegment) -> int:
    return size.segment.last - size.segment.first + 1


class _Wanted:
    """Selects the lines of one log to keep: called with its parts from the oldest on."""

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns
        self._seen = 0

    def __call__(self, part: pa.Table) -> pa.Table:
        types = part.column("type").to_pylist()
        moments = part.column("at_ns").to_pylist()
        first = max(0, _FIRST_LINES - self._seen)
        self._seen += len(types)
        keep = [
            index < first or kind not in _PASSING or at >= self._since_ns
            for index, (kind, at) in enumerate(zip(types, moments, strict=True))
        ]
        return part.filter(keep)
