"""Search for one stat of many events by walking through theirs: faster than by its bytes if most of them have it.

The head of nearly every stat fits one word: the event's tag, a size below 128, the tag of the id, an id of at most two
bytes. One look at each stat therefore shows whether it is wanted and where the next one begins, and an event whose stat
is found is finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepscope.readers.protobuf.codec import BYTES, VARINT, encode_varint
from stepscope.readers.xplane.messages import EVENT_STATS, STAT_BYTES, STAT_ID, tag
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.readers.protobuf.varints import U64, Buffer
    from stepscope.tables.records import I64, Bool

_HEAD_MASK = np.uint64(0x00FF_80FF)
_HEAD = np.uint64(tag(STAT_ID, VARINT) << 16 | tag(EVENT_STATS, BYTES))
_MIN_SIZE = np.uint64(0x7E00)
"""Bits of the size that are not all zero if there is room for an id."""
_SIZE_AT, _SMALL, _ID_AT = np.uint64(8), np.uint64(0x7F), np.uint64(24)
_ID_POSITION = 3
_BYTES_TAG = tag(STAT_BYTES, BYTES)
_MAX_ID = (1 << 14) - 1
"""Largest id that takes two bytes."""


class WalkedStats(NamedTuple):
    """Stats that were found, and events that were not walked to their end. Positions in a window; all int64."""

    rows: I64
    at: I64
    """Position after the id."""
    end: I64
    left: tuple[I64, I64, I64]
    """Rows, the position at which the walk stopped because a stat has another head or no value, and the event's end."""


def walk(window: Buffer, rows: I64, cursor: I64, end: I64, wanted: Sequence[int]) -> WalkedStats:
    """The first stat with one of some ids of the events ``rows``, whose stats lie from ``cursor`` to ``end``.

    Raises:
        FormatError: a stat reaches beyond its event.
    """
    none = np.empty(0, np.int64)
    found, left = [(none,) * 3], [(none,) * 3]
    if not all(0 <= key <= _MAX_ID for key in wanted):
        return WalkedStats(none, none, none, (rows, cursor, end))
    while len(rows):
        word = window.words[cursor]
        usual = ((word & _HEAD_MASK) == _HEAD) & ((word & _MIN_SIZE) != 0)
        if not usual.all():
            odd, kept = np.flatnonzero(~usual), np.flatnonzero(usual)
            left.append((rows[odd], cursor[odd], end[odd]))
            rows, cursor, end, word = rows[kept], cursor[kept], end[kept], word[kept]
        after = ((word >> _SIZE_AT) & _SMALL).view(np.int64)
        after += cursor
        after += 2
        wrong = after > end
        if wrong.any():
            where = int(cursor[wrong][0]) + window.base
            raise FormatError(f"the stat at byte {where} reaches beyond the end of its event")
        word >>= _ID_AT
        more = after < end
        for code in map(encode_varint, wanted):
            hit = _begins(word, code)
            more &= ~hit
            chosen = np.flatnonzero(hit)
            at, until = cursor[chosen] + (_ID_POSITION + len(code)), after[chosen]
            said = (window.data[at] != _BYTES_TAG) & (at < until)
            if not said.all():
                silent = chosen[~said]
                left.append((rows[silent], cursor[silent], end[silent]))
                chosen, at, until = chosen[said], at[said], until[said]
            found.append((rows[chosen], at, until))
        live = np.flatnonzero(more)
        rows, cursor, end = rows[live], after[live], end[live]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    rest = [np.concatenate(column) for column in zip(*left, strict=True)]
    return WalkedStats(columns[0], columns[1], columns[2], (rest[0], rest[1], rest[2]))


def _begins(words: U64, code: bytes) -> Bool:
    """The words that begin with one or two bytes."""
    number = int.from_bytes(code, "little")
    same: Bool = words.astype(np.uint8) == number if len(code) == 1 else words.astype(np.uint16) == number
    return same
