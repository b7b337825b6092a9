"""Where the events of a line begin.

Events lie one behind the other, each led by its length, so where one begins is known only when all before it are. A
long run is walked from many places at once all the same: each lane begins where an event may begin, and goes on until
the next lane's beginning. The first lane begins at a true event. A lane whose path meets the end of the true path
before it is true from there on; what it went through before that is dropped, and a lane that is not met at all is
walked once more, one event at a time. So a wrong guess costs time and never an event.

A guess is seldom wrong, and not for long: what looks like an event and is none is a stat inside of one (both are field
4), and the chain of an event's stats ends where the next event begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.formats.protobuf import BYTES
from stepscope.formats.varints import decode
from stepscope.formats.xplane_wire import LINE_EVENTS, tag

if TYPE_CHECKING:
    from stepscope.formats.varints import U8, Buffer
    from stepscope.model.records import I64, Bool

MARGIN = 11
"""Bytes that the head of an event takes at most: its tag and its length."""
_LANE_BYTES = 1024
_MIN_LANES = 32
"""Fewer are not worth their set-up."""
_FEW_LANES = 12
"""So many are walked one after the other sooner than at once."""
_LOOK_BYTES = 56
"""How far an event is looked for from where a lane should begin."""
_MORE, _DATA = 0x80, 0x7F
_EVENT_TAG = tag(LINE_EVENTS, BYTES)
_ID_TAG = 0x08
_OFFSET_TAG = 0x10
"""Of an event, behind its id; a stat has none."""
_FAR = 1 << 61
_HEAD_BYTES = 8
"""Tag, length, tag and number of the id, tag of the offset: as far as is looked at."""


class HeadFinder:
    """Finds the events of one window after the other; keeps its memory in between."""

    def __init__(self) -> None:
        """Begin with no memory."""
        self._is_head: Bool = np.empty(0, np.bool_)

    def find(self, buffer: Buffer, end: int) -> I64:
        """Where the events that begin before ``end`` begin, and where the last of them ends: int64[event + 1].

        An event begins at 0. The last one may end behind the buffer.
        """
        lanes = end // _LANE_BYTES
        if lanes < _MIN_LANES:
            heads, last = _walk(buffer, 0, end)
            return np.array([*heads, last], np.int64)
        if len(self._is_head) < end:
            self._is_head = np.empty(end, np.bool_)
        is_head = self._is_head[:end]
        is_head.fill(False)
        begin = _begin(buffer.data, lanes)
        passed, reached = _walk_lanes(buffer, is_head, begin, end)
        last = _join(buffer, is_head, begin, reached, end)
        true: I64 = passed[is_head[passed]]
        if len(true) != np.count_nonzero(is_head):  # some were walked once more
            true = np.flatnonzero(is_head).astype(np.int64, copy=False)
        return np.append(true, last)


def _walk(buffer: Buffer, at: int, end: int, known: Bool | None = None) -> tuple[list[int], int]:
    """Events from ``at`` on, one at a time, until ``end``, the end of the run, or one that is known; where that is."""
    content = buffer.content
    heads: list[int] = []
    while at < end and content[at] == _EVENT_TAG:
        if known is not None and known[at]:
            break
        heads.append(at)
        size = content[at + 1]
        if size < _MORE:
            at += size + 2
        elif content[at + 2] < _MORE:
            at += (size & _DATA | content[at + 2] << 7) + 3
        else:
            at = int(_next(buffer, np.array([at]))[0])
    return heads, at


def _begin(data: U8, lanes: int) -> I64:
    """Where lanes begin: where something begins that looks like an event, near where the lane should."""
    starts = np.arange(lanes) * _LANE_BYTES
    width = _LOOK_BYTES + _HEAD_BYTES
    near = np.lib.stride_tricks.sliding_window_view(data, width)[starts].reshape(-1)
    content = [near[at : len(near) - _HEAD_BYTES + at] for at in range(_HEAD_BYTES)]
    placed = near == _OFFSET_TAG
    placed[:-2] |= placed[1:-1] | placed[2:]
    short = (content[2] == _ID_TAG) & placed[4 : 4 - _HEAD_BYTES]
    long = (content[3] == _ID_TAG) & placed[5 : 5 - _HEAD_BYTES]
    large = content[1] >= _MORE
    looks = np.zeros(len(near), np.bool_)
    looks[:-_HEAD_BYTES] = (content[0] == _EVENT_TAG) & ((short & ~large) | (long & large))
    looks = looks.reshape(lanes, width)[:, :_LOOK_BYTES]
    looks[0] = False
    looks[0, 0] = True
    found = looks.any(axis=1)
    begin: I64 = (starts + looks.argmax(axis=1))[found]
    return begin


def _walk_lanes(buffer: Buffer, is_head: Bool, begin: I64, end: int) -> tuple[I64, I64]:
    """Walk all lanes at once, marking what they pass; what that is, rising, and where each lane stopped."""
    data = buffer.data
    limit = np.append(begin[1:], end)
    reached: I64 = begin.copy()
    passed = []
    lane = np.arange(len(begin))
    cursor = begin
    while len(lane) > _FEW_LANES:
        passed.append(cursor)
        cursor = _next(buffer, cursor)
        alive = data.take(cursor, mode="clip") == _EVENT_TAG
        alive &= cursor < limit
        if not alive.all():
            done, kept = np.flatnonzero(~alive), np.flatnonzero(alive)
            reached[lane[done]] = cursor[done]
            lane, cursor, limit = lane[kept], cursor[kept], limit[kept]
    for one, at, until in zip(lane.tolist(), cursor.tolist(), limit.tolist(), strict=True):
        heads, reached[one] = _walk(buffer, at, until)
        passed.append(np.array(heads, np.int64))
    rising = np.sort(np.concatenate(passed))
    is_head[rising] = True
    return rising, reached


def _next(buffer: Buffer, cursor: I64) -> I64:
    """Where the events at ``cursor`` end."""
    after = cursor + 1
    size = buffer.data[after]
    after += size
    after += 1
    if size.max() < _MORE:
        return after
    large = np.flatnonzero(size >= _MORE)
    at = cursor[large]
    high = buffer.data[at + 2].astype(np.int64)
    after[large] += (high << 7) - _MORE + 1
    larger = np.flatnonzero(high >= _MORE)
    if len(larger):
        long, content = decode(buffer, at[larger] + 1)
        after[large[larger]] = np.where((long < 0) | (long > _FAR), _FAR, content + long)
    return after


def _join(buffer: Buffer, is_head: Bool, begin: I64, reached: I64, end: int) -> int:
    """Keep of every lane's path what is true; returns where the last event ends."""
    limits = np.append(begin[1:], end)
    elsewhere = np.append(np.flatnonzero(reached != limits), len(begin) - 1)
    lane, at = 0, 0
    while lane < len(begin):
        first, limit = int(begin[lane]), int(limits[lane])
        if at == first:  # the guess was right, and so are those behind it up to a lane that stops elsewhere
            lane = int(elsewhere[np.searchsorted(elsewhere, lane)])
            at, limit = int(reached[lane]), int(limits[lane])
        elif at >= limit:
            is_head[first:limit] = False
        elif is_head[at]:
            is_head[first:at] = False
            at = int(reached[lane])
        else:
            heads, after = _walk(buffer, at, limit, is_head)
            met = after < limit and bool(is_head[after])
            is_head[first : min(after, limit)] = False
            is_head[heads] = True
            at = int(reached[lane]) if met else after
        if at < limit:
            is_head[at:] = False
            break
        lane += 1
    return at
