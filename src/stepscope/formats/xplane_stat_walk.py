"""Some stats of many events found by walking through all of them: where most events have one, sooner than by bytes.

The head of nearly every stat is one word: the event's tag, a size below 128, the tag of the id, an id of at most two
bytes. So one look at each stat tells whether it is wanted and where the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepscope.errors import FormatError
from stepscope.formats.protobuf import BYTES, VARINT, encode_varint
from stepscope.formats.xplane_wire import EVENT_STATS, STAT_ID, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.formats.varints import Buffer
    from stepscope.model.records import I64

_HEAD_MASK = np.uint64(0x00FF_80FF)
_HEAD = np.uint64(tag(STAT_ID, VARINT) << 16 | tag(EVENT_STATS, BYTES))
_MIN_SIZE = np.uint64(0x7E00)
"""Bits of the size that are not all zero where there is room for an id."""
_SIZE_AT, _SMALL, _ID_AT = np.uint64(8), np.uint64(0x7F), np.uint64(24)
_ID_POSITION = 3
MAX_ID = (1 << 14) - 1
"""The largest that takes two bytes."""


class Walked(NamedTuple):
    """Stats that were found, and events that were not walked to their end. Positions in a window; int64 all."""

    rows: I64
    ids: I64
    at: I64
    """Behind the id."""
    end: I64
    left: tuple[I64, I64, I64]
    """Rows, where the walk stopped because a stat has another head, where the event ends."""


def walk(window: Buffer, rows: I64, cursor: I64, end: I64, wanted: Sequence[int]) -> Walked:
    """The stats of some ids, ``MAX_ID`` at most, in the events ``rows``, whose stats lie from ``cursor`` to ``end``.

    Raises:
        FormatError: a stat reaches beyond its event.
    """
    codes = [(key, encode_varint(key)) for key in wanted]
    found: list[tuple[I64, I64, I64, I64]] = []
    left: list[tuple[I64, I64, I64]] = []
    while len(rows):
        word = window.words[cursor]
        usual = ((word & _HEAD_MASK) == _HEAD) & ((word & _MIN_SIZE) != 0)
        if not usual.all():
            odd, kept = np.flatnonzero(~usual), np.flatnonzero(usual)
            left.append((rows[odd], cursor[odd], end[odd]))
            rows, cursor, end, word = rows[kept], cursor[kept], end[kept], word[kept]
        ids = (word >> _ID_AT).astype(np.uint16)
        low = ids.astype(np.uint8)
        word >>= _SIZE_AT
        word &= _SMALL
        after = cursor + word.view(np.int64)
        after += 2
        for key, code in codes:
            chosen = np.flatnonzero(low == code[0] if len(code) == 1 else ids == int.from_bytes(code, "little"))
            if len(chosen):
                at = cursor[chosen] + (_ID_POSITION + len(code))
                found.append((rows[chosen], np.full(len(chosen), key, np.int64), at, after[chosen]))
        live = np.flatnonzero(after < end)
        if len(live) < len(rows):
            wrong = after > end
            if wrong.any():
                where = int(cursor[wrong][0]) + window.base
                raise FormatError(f"the stat at byte {where} reaches beyond the end of its event")
            rows, cursor, end = rows[live], after[live], end[live]
        else:
            cursor = after
    none = np.empty(0, np.int64)
    columns = [np.concatenate(column) for column in zip((none,) * 4, *found, strict=True)]
    rest = [np.concatenate(column) for column in zip((none,) * 3, *left, strict=True)]
    return Walked(columns[0], columns[1], columns[2], columns[3], (rest[0], rest[1], rest[2]))
