"""Blocks of events, put into order and joined into columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.formats.xplane_events import EventBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.optrace import I16, I32
    from stepscope.model.records import I64

T = TypeVar("T", bound=np.generic)


@dataclass(slots=True, kw_only=True)
class Columns:
    """All events, as ``EventBlock``; ``occurrences`` and ``likely`` by row."""

    start_ns: I64
    dur_ns: I64
    rem_ps: I16 | None
    meta: I32
    stats_at: I64
    stats_size: I32
    occurrences: dict[int, int]
    likely: dict[int, I64]


def joined(blocks: Sequence[EventBlock]) -> Columns:
    """The columns of all blocks; the blocks are empty afterwards, so that no more than one column stands twice."""
    occurrences = {}
    first = 0
    for block in blocks:
        occurrences.update({first + row: count for row, count in block.occurrences.items()})
        first += len(block)
    likely = likely_rows(blocks)
    rem = None
    if any(block.rem_ps is not None for block in blocks):
        rem = _joined([_rem(block) for block in blocks], np.int16)
    start = _joined([block.start_ns for block in blocks], np.int64)
    for block in blocks:
        block.start_ns = start[:0]
    dur = _joined([block.dur_ns for block in blocks], np.int64)
    for block in blocks:
        block.dur_ns = dur[:0]
    at = _joined([block.stats_at for block in blocks], np.int64)
    for block in blocks:
        block.stats_at = at[:0]
    return Columns(
        start_ns=start,
        dur_ns=dur,
        rem_ps=rem,
        meta=_joined([block.meta for block in blocks], np.int32),
        stats_at=at,
        stats_size=_joined([block.stats_size for block in blocks], np.int32),
        occurrences=occurrences,
        likely=likely,
    )


def likely_rows(blocks: Sequence[EventBlock], first: int = 0) -> dict[int, I64]:
    """``EventBlock.likely`` of blocks that follow each other, counted from ``first`` for the first event."""
    parts: dict[int, list[I64]] = {}
    for block in blocks:
        for key, rows in block.likely.items():
            parts.setdefault(key, []).append(rows + first)
        first += len(block)
    return {key: np.concatenate(rows) for key, rows in parts.items()}


def _joined(parts: Sequence[npt.NDArray[T]], dtype: type[T]) -> npt.NDArray[T]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _rem(block: EventBlock) -> I16:
    return block.rem_ps if block.rem_ps is not None else np.zeros(len(block), np.int16)


def in_order(blocks: list[EventBlock]) -> list[EventBlock]:
    """The blocks of a line by start, the longer first: as they are where the file has them so, as most do."""
    last = -1
    for block in blocks:
        if len(block) and (int(block.start_ns[0]) <= last or not _rising(block.start_ns, block.dur_ns)):
            return [_sorted(joined(blocks), sum(b.dropped for b in blocks))]
        last = int(block.start_ns[-1]) if len(block) else last
    return blocks


def _rising(start: I64, dur: I64) -> bool:
    step = np.diff(start)
    if not len(step) or step.min() > 0:
        return True
    ties = np.flatnonzero(step == 0)
    return bool(step.min() == 0 and (dur[ties] >= dur[ties + 1]).all())


def _sorted(columns: Columns, dropped: int) -> EventBlock:
    order = np.lexsort((-columns.dur_ns, columns.start_ns))
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    return EventBlock(
        meta=columns.meta[order],
        start_ns=columns.start_ns[order],
        dur_ns=columns.dur_ns[order],
        rem_ps=columns.rem_ps[order] if columns.rem_ps is not None else None,
        stats_at=columns.stats_at[order],
        stats_size=columns.stats_size[order],
        occurrences={int(row_of[row]): count for row, count in columns.occurrences.items()},
        likely={key: np.sort(row_of[rows]) for key, rows in columns.likely.items()},
        dropped=dropped,
    )
