"""Starts of the events of a line, or of the metadata of a plane.

Events are consecutive, each with its length in front, so the start of one is known only once all before it are. A long
run is nevertheless not walked one by one: byte patterns that look like an event are found, the end of each is computed
for all at once, and those reachable from the first event, end to start, are real. Where an event ends and nothing that
looks like one begins (it lacks its offset, or has another order of fields), the run is walked one event at a time until
a candidate is reached. A wrong guess therefore costs time and never an event.

A guess is rarely wrong: a false candidate is a stat inside an event (both are field 4), and a stat has no offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepscope.readers.protobuf.varints import decode

if TYPE_CHECKING:
    from stepscope.readers.protobuf.varints import U64, Buffer
    from stepscope.tables.records import I64

MARGIN = 11
"""Maximum size of a message's head: its tag and its length."""
_LOOK_BYTES = 1 << 17
"""Bytes searched at a time: they stay in the processor's cache."""
_SHORT_BYTES = 1 << 13
"""Length below which walking a run is faster than searching it."""
_HEAD_BYTES = 8
"""Bytes of a head that are examined. The tag of an event's offset is its fifth to eighth: after lengths of one or two
bytes, and ids of one to three."""
_LENGTH_BYTES, _ID_BYTES = 2, 3
_MORE, _DATA = 0x80, 0x7F
_BYTE, _LOW_BYTE = np.uint64(8), np.uint64(0xFF)
_MORE_BIT, _MORE_TO_BYTE = np.uint64(_MORE), np.uint64(4)
_ID_TAG = 0x08
_FAR = 1 << 61


class Look(NamedTuple):
    """The look of messages that begin with an id."""

    tag: int
    """Tag of the message."""
    behind_id: int
    """Tag of its second field."""


def find(buffer: Buffer, end: int, look: Look) -> I64:
    """The starts of the messages that begin before ``end``, and the end of the last: int64[message + 1].

    The first begins at 0. The last one may end after the buffer, but its head does not.
    """
    guesses = _guesses(buffer, end, look) if end >= _SHORT_BYTES else np.empty(0, np.int64)
    if not len(guesses):
        heads, last = _walk(buffer, 0, end, look)
        return np.array([*heads, last], np.int64)
    return _true(buffer, guesses, end, look)


def _guesses(buffer: Buffer, end: int, look: Look) -> I64:
    """Rising positions before ``end`` that look like the start of a message."""
    data = buffer.data
    found = []
    for first in range(0, end, _LOOK_BYTES):
        near = data[first : min(first + _LOOK_BYTES, end) + _HEAD_BYTES]
        size = len(near) - _HEAD_BYTES
        is_offset = near == look.behind_id
        one_of_two = is_offset[4:-1] | is_offset[5:]
        looks = one_of_two[:size] | one_of_two[2:][:size]
        looks &= near[:size] == look.tag
        found.append(np.flatnonzero(looks) + first)
    heads = np.concatenate(found)
    word = buffer.words[heads]
    word >>= _BYTE
    for _ in range(_LENGTH_BYTES - 1):
        _pass_byte_with_more(word)
    word >>= _BYTE
    looks = word & _LOW_BYTE == _ID_TAG
    word >>= _BYTE
    for _ in range(_ID_BYTES - 1):
        _pass_byte_with_more(word)
    word >>= _BYTE
    looks &= word & _LOW_BYTE == look.behind_id
    true: I64 = heads[looks]
    return true


def _pass_byte_with_more(word: U64) -> None:
    """Shift out the lowest byte if its number continues after it."""
    more = word & _MORE_BIT
    more >>= _MORE_TO_BYTE
    word >>= more


def _true(buffer: Buffer, guesses: I64, end: int, look: Look) -> I64:
    """The real events among the candidates, followed from the first."""
    ends = _ends(buffer, guesses)
    apart = np.append(np.flatnonzero(ends[:-1] != guesses[1:]), len(guesses) - 1)
    after = ends[apart]
    onto = np.searchsorted(guesses, after)
    known = guesses.take(onto, mode="clip") == after
    wrong: list[int] = []
    walked: list[int] = []
    at, position = 0, 0
    if guesses[0] != 0:
        at, position = _until_known(buffer, guesses, 0, end, walked, look)
        wrong += range(position)
    for last, reached, index, is_known in zip(
        apart.tolist(), after.tolist(), onto.tolist(), known.tolist(), strict=True
    ):
        if last >= position:
            at, position = reached, index
            if not is_known:
                at, position = _until_known(buffer, guesses, reached, end, walked, look)
            wrong += range(last + 1, position)
    heads = np.delete(guesses, wrong) if wrong else guesses
    if walked:
        heads = np.sort(np.append(heads, walked), kind="stable")
    return np.append(heads, at)


def _until_known(buffer: Buffer, guesses: I64, at: int, end: int, walked: list[int], look: Look) -> tuple[int, int]:
    """Walk events until a candidate, or the last, is reached; return its position, and its index in ``guesses``."""
    while True:
        position = int(np.searchsorted(guesses, at))
        limit = int(guesses[position]) if position < len(guesses) else end
        if at == limit:
            return at, position
        heads, at = _walk(buffer, at, limit, look)
        walked += heads
        if at < limit or at >= end:
            return at, len(guesses)


def _walk(buffer: Buffer, at: int, end: int, look: Look) -> tuple[list[int], int]:
    """Walk events from ``at`` onwards, one at a time, until ``end`` or the end of the run; return the final
    position.
    """
    content = buffer.content
    heads: list[int] = []
    while at < end and content[at] == look.tag:
        heads.append(at)
        size = content[at + 1]
        if size < _MORE:
            at += size + 2
        elif content[at + 2] < _MORE:
            at += (size & _DATA | content[at + 2] << 7) + 3
        else:
            at = int(_ends(buffer, np.array([at]))[0])
    return heads, at


def _ends(buffer: Buffer, heads: I64) -> I64:
    """Ends of the events at ``heads``."""
    after = heads + 1
    size = buffer.data[after]
    after += size
    after += 1
    large = np.flatnonzero(size >= _MORE)
    if len(large):
        at = heads[large]
        high = buffer.data[at + 2].astype(np.int64)
        after[large] += (high << 7) - _MORE + 1
        larger = np.flatnonzero(high >= _MORE)
        if len(larger):
            long, content = decode(buffer, at[larger] + 1)
            after[large[larger]] = np.where((long < 0) | (long > _FAR), _FAR, content + long)
    return after
