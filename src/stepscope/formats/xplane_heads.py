"""Where the events of a line begin.

Events lie one behind the other, each led by its length, so where one begins is known only when all before it are. A
long run is walked from many places at once all the same: each lane begins where an event may begin, and goes on until
the next lane's beginning. The first lane begins at a true event. A lane whose path meets the end of the true path
before it is true from there on; what it went through before that is dropped, and a lane that is not met at all is
walked once more, one event at a time. So a wrong guess costs time and never an event.

A guess is seldom wrong for long: what looks like an event and is none is a stat inside of one (both are field 4), and
the chain of an event's stats ends where the next event begins.
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
_LANE_BYTES = 4096
_MIN_LANES = 32
"""Fewer are not worth their set-up."""
_LOOK_BYTES = 512
"""How far an event is looked for from where a lane should begin."""
_MORE, _DATA = 0x80, 0x7F
_EVENT_TAG = tag(LINE_EVENTS, BYTES)
_ID_TAG = 0x08
_FAR = 1 << 61


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
        begin, reached = _walk_lanes(buffer, is_head, lanes, end)
        last = _join(buffer, is_head, begin, reached, end)
        return np.append(np.flatnonzero(is_head), last)


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
    """Where lanes begin: where something begins that looks like an event or a stat, near where the lane should."""
    starts = np.arange(lanes) * _LANE_BYTES
    near = np.lib.stride_tricks.sliding_window_view(data, _LOOK_BYTES + 3)[starts]
    first, short, long = near[:, :-3] == _EVENT_TAG, near[:, 2:-1] == _ID_TAG, near[:, 3:] == _ID_TAG
    large = near[:, 1:-2] >= _MORE
    looks = first & ((short & ~large) | (long & large))
    looks[0] = False
    looks[0, 0] = True
    found = looks.any(axis=1)
    begin: I64 = (starts + looks.argmax(axis=1))[found]
    return begin


def _walk_lanes(buffer: Buffer, is_head: Bool, lanes: int, end: int) -> tuple[I64, I64]:
    """Walk all lanes at once, marking what they pass; where each began and where it stopped."""
    data = buffer.data
    begin = _begin(data, lanes)
    limit = np.append(begin[1:], end)
    reached = begin.copy()
    lane = np.arange(len(begin))
    cursor = begin
    while len(lane):
        is_head[cursor] = True
        cursor = _next(buffer, cursor)
        alive = data.take(cursor, mode="clip") == _EVENT_TAG
        alive &= cursor < limit
        if not alive.all():
            done, kept = np.flatnonzero(~alive), np.flatnonzero(alive)
            reached[lane[done]] = cursor[done]
            lane, cursor, limit = lane[kept], cursor[kept], limit[kept]
    return begin, reached


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
    at = 0
    ended = False
    for first, stop, limit in zip(begin.tolist(), reached.tolist(), [*begin[1:].tolist(), end], strict=True):
        if ended or at >= limit:
            is_head[first:limit] = False
            continue
        met = bool(is_head[at])
        if not met:
            heads, after = _walk(buffer, at, limit, is_head)
            met = after < limit and bool(is_head[after])
            is_head[first : min(after, limit)] = False
            is_head[heads] = True
            at = after
        else:
            is_head[first:at] = False
        if met:
            at = stop
        ended = at < limit
        if ended:
            is_head[at:limit] = False
    return at
