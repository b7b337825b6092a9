"""The events of a file in columns that exist once: blocks are appended as they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.readers.xplane.line_events import EventBlock
    from stepscope.tables.optrace import I16, I32
    from stepscope.tables.records import I64

_EVENT_BYTES = 12
"""Minimum size of nearly all events: gives the room for a file's events before they are read. Unused room costs
nothing."""
_INT32_BYTES = 1 << 31
"""File size below which positions take half the room."""
_GROWTH = 2


class EventTable:
    """Events in the order of planes and lines, within a line by start, longer ones first. Columns are ``EventBlock``'s.

    Columns have room for more than ``rows`` until ``close``.
    """

    def __init__(self, size_bytes: int) -> None:
        """Reserve room for the events of a file of a size."""
        room = 1 + size_bytes // _EVENT_BYTES
        self.start_ns: I64 = np.empty(room, np.int64)
        self.dur_ns: I64 = np.empty(room, np.int64)
        self.rem_ps: I16 | None = None
        self.meta: I32 = np.empty(room, np.int32)
        self.stats_at: I64 | I32 = np.empty(room, np.int32 if size_bytes < _INT32_BYTES else np.int64)
        self.stats_size: I32 = np.empty(room, np.int32)
        self.occurrences: dict[int, int] = {}
        """Occurrences by row."""
        self.rows = 0
        self._likely: dict[int, list[I64]] = {}
        self._numbers: dict[int, list[tuple[I64, I64]]] = {}

    def add_line(self, blocks: Iterable[EventBlock]) -> tuple[int, int, int]:
        """Add the events of a line; return its first row, the row after its last, and the number omitted."""
        first, dropped, latest = self.rows, 0, -1
        in_order = True
        for block in blocks:
            dropped += block.dropped
            if len(block):
                in_order &= int(block.start_ns[0]) > latest and _rising(block.start_ns, block.dur_ns)
                latest = int(block.start_ns[-1])
                self._add(block)
        if not in_order:
            self._sort(first)
        return first, self.rows, dropped

    def take_likely(self) -> dict[int, I64]:
        """``EventBlock.likely`` of the lines that were added since the last call, by row of the table."""
        found = {key: np.sort(np.concatenate(parts), kind="stable") for key, parts in self._likely.items()}
        self._likely = {}
        return found

    def take_numbers(self) -> dict[int, tuple[I64, I64]]:
        """Return ``EventBlock.numbers`` likewise."""
        found = {}
        for key, parts in self._numbers.items():
            rows, values = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.argsort(rows, kind="stable")
            found[key] = rows[order], values[order]
        self._numbers = {}
        return found

    def close(self) -> None:
        """Release the unused room."""
        for column in self._columns():
            column.resize(self.rows, refcheck=False)

    def _columns(self) -> list[I64 | I32 | I16]:
        columns: list[I64 | I32 | I16] = [self.start_ns, self.dur_ns, self.meta, self.stats_at, self.stats_size]
        if self.rem_ps is not None:
            columns.append(self.rem_ps)
        return columns

    def _add(self, block: EventBlock) -> None:
        first, last = self.rows, self.rows + len(block)
        if last > len(self.start_ns):
            for column in self._columns():
                column.resize(_GROWTH * last, refcheck=False)
        self.start_ns[first:last] = block.start_ns
        self.dur_ns[first:last] = block.dur_ns
        self.meta[first:last] = block.meta
        self.stats_at[first:last] = block.stats_at
        self.stats_size[first:last] = block.stats_size
        if block.rem_ps is not None:
            if self.rem_ps is None:
                self.rem_ps = np.zeros(len(self.start_ns), np.int16)
            self.rem_ps[first:last] = block.rem_ps
        self.occurrences |= {first + row: count for row, count in block.occurrences.items()}
        for key, positions in block.likely.items():
            self._likely.setdefault(key, []).append(positions + first)
        for key, (positions, values) in block.numbers.items():
            self._numbers.setdefault(key, []).append((positions + first, values))
        self.rows = last

    def _sort(self, first: int) -> None:
        """Sort the rows from ``first`` onwards, those of one line."""
        line = slice(first, self.rows)
        start, dur = self.start_ns[line], self.dur_ns[line]
        order = np.argsort(start, kind="stable")
        if not _rising(start[order], dur[order]):
            order = np.lexsort((-dur, start))
        for column in self._columns():
            column[line] = column[line][order]
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(first, self.rows)
        moved = {int(row_of[row - first]): count for row, count in self.occurrences.items() if row >= first}
        self.occurrences = {row: count for row, count in self.occurrences.items() if row < first} | moved
        for parts in self._likely.values():
            parts[:] = [row_of[rows - first] if len(rows) and rows[0] >= first else rows for rows in parts]
        for found in self._numbers.values():
            found[:] = [(row_of[rows - first] if len(rows) and rows[0] >= first else rows, v) for rows, v in found]


def _rising(start: I64, dur: I64) -> bool:
    step = np.diff(start)
    if not len(step) or step.min() > 0:
        return True
    ties = np.flatnonzero(step == 0)
    return bool(step.min() == 0 and (dur[ties] >= dur[ties + 1]).all())
