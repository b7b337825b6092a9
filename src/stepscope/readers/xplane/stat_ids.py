"""Possible positions of the stats of an XSpace's events: their ids as bytes, which can only be found too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.readers.protobuf.codec import BYTES, VARINT, encode_varint
from stepscope.readers.xplane.messages import EVENT_STATS, STAT_ID, tag
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.readers.protobuf.varints import Buffer
    from stepscope.readers.xplane.messages import WirePlane
    from stepscope.tables.records import I64

ALIASES = {"level 0": StatName.TF_OP}
"""Earlier names of stats: TensorFlow 2.4 used this for a kernel's op."""
_ID_TAG = tag(STAT_ID, VARINT)
_STATS_TAG = tag(EVENT_STATS, BYTES)
_MORE = 0x80
_LOOK_BYTES = 1 << 17
"""Bytes searched at a time: they stay in the processor's cache."""


def stat_ids(plane: WirePlane) -> dict[str, list[int]]:
    """The ids of each stat of a plane: most have one."""
    ids: dict[str, list[int]] = {}
    for key, text in plane.stat_names.items():
        if text in ids:
            ids[text].append(key)
        else:
            ids[text] = [key]
    for before, text in ALIASES.items():
        if before in ids:
            ids[text] = ids.get(text, []) + ids.pop(before)
    return ids


def id_places(window: Buffer, last: int, key: int) -> I64:
    """Positions before ``last`` that may hold the id of a stat: its bytes as every writer encodes it."""
    first_byte, *others = _ID_TAG, *encode_varint(key)
    found = []
    for at in range(0, last, _LOOK_BYTES):
        end = min(at + _LOOK_BYTES, last)
        hit = window.data[at:end] == first_byte
        for offset, byte in enumerate(others, 1):
            hit &= window.data[at + offset : end + offset] == byte
        found.append(np.flatnonzero(hit) + at)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def perhaps(window: Buffer, at: I64, end: I64, wanted: I64) -> tuple[I64, I64, I64]:
    """The events from ``at`` to ``end`` that may have one of some stats, rising; the first and last possible
    position.
    """
    places = [id_places(window, window.size, key) for key in wanted.tolist()]
    positions = places[0] if len(places) == 1 else np.sort(np.concatenate(places))
    rank = np.searchsorted(at, positions, "right") - 1
    inside = np.flatnonzero((rank >= 0) & (positions < end[rank]))
    rank, positions = rank[inside], positions[inside]
    last = np.diff(rank, append=-1) != 0
    first = np.append(True, last[:-1])[: len(last)]
    return rank[last], positions[first], positions[last]


def passed(window: Buffer, cursor: I64, before: I64) -> I64:
    """Positions of the walk through stats from ``cursor`` onwards after those that end before each given position."""
    data = window.data
    reached: I64 = cursor.copy()
    rows, at = np.arange(len(cursor)), cursor
    while len(rows):
        size = data[at + 1]
        after = at + 2
        after += size
        short = np.flatnonzero((after <= before) & (size < _MORE) & (data[at] == _STATS_TAG))
        rows, at, before = rows[short], after[short], before[short]
        reached[rows] = at
    return reached


def where_in(ids: I64, wanted: I64) -> I64:
    """Positions of wanted ids: usually there is one."""
    return np.flatnonzero(ids == wanted[0] if len(wanted) == 1 else np.isin(ids, wanted))


def rows_between(parts: Sequence[I64], first: int, last: int) -> tuple[I64, I64]:
    """The numbers between two bounds in several rising arrays: those that occur once, and those that repeat."""
    rows = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts), kind="stable")
    rows = rows[slice(*np.searchsorted(rows, (first, last)))]
    new = np.append(True, rows[1:] != rows[:-1])[: len(rows)]
    once = new & np.append(new[1:], True)[: len(rows)]
    return rows[once], rows[new & ~once]
