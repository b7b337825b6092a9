"""Protocol buffer wire format, many numbers at once.

A varint is read as one unaligned 8-byte word: the lowest clear continuation bit ends it, three rounds of shifts close
the gaps between its 7-bit groups. Longer ones (negative numbers, hashes) are finished one by one byte, in the few rows
that have them. Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stepscope.errors import FormatError

if TYPE_CHECKING:
    from stepscope.model.records import I64, Bool

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]

PADDING = 32
"""Zero bytes that a buffer has behind its end, so that words may be read at any position inside."""

_WORD_BYTES = 8
_STOP_BITS = np.uint64(0x8080_8080_8080_8080)
_DATA_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_CLOSE = (
    (np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
_BYTE_ONES = np.uint64(0x0101_0101_0101_0101)
"""Times itself where it is masked: the highest byte counts the bytes that are left."""
_ONE, _TOP_BYTE = np.uint64(1), np.uint64(56)
_MORE, _DATA = 0x80, 0x7F


class Buffer:
    """Some bytes of a file, to be read many at a time. Positions in it count from ``base``.

    ``data`` uint8[size + PADDING], the padding zero; ``words`` uint64[size + PADDING - 7]: the little-endian word that
    begins at each byte.
    """

    def __init__(self, content: bytes | bytearray, size: int, base: int = 0) -> None:
        """Of the first ``size`` bytes of ``content``, which begin at ``base`` of a file; ``PADDING`` zeros follow."""
        self.base = base
        self.size = size
        self.content = content
        padded = size + PADDING
        self.data: U8 = np.frombuffer(content, np.uint8, padded)
        self.words: U64 = np.ndarray(
            shape=(padded - _WORD_BYTES + 1,), dtype=np.dtype("<u8"), buffer=content, strides=(1,)
        )

    def text(self, first: int, last: int) -> str:
        """UTF-8; what is none is replaced."""
        return str(self.content[first:last], "utf-8", "replace")


def decode(buffer: Buffer, at: I64) -> tuple[I64, I64]:
    """Numbers that begin at ``at``, and where each one ends.

    Shapes: ``at`` int64[number], each below the buffer's size; results int64[number].
    Numbers above 2**63 - 1 come as their two's complement.

    Raises:
        FormatError: a number has more than ten bytes. Whether it ends where it may is for the caller to check.
    """
    word = buffer.words[at]
    stop = ~word
    stop &= _STOP_BITS
    upto = stop - _ONE
    upto ^= stop  # the bits up to the lowest that stops
    word &= upto
    word &= _DATA_BITS
    for high, shift in _CLOSE:
        upper = word & high
        word ^= upper
        upper >>= shift
        word |= upper
    upto &= _BYTE_ONES
    upto *= _BYTE_ONES
    upto >>= _TOP_BYTE
    value = word.view(np.int64)
    ends: I64 = upto.view(np.int64)
    ends += at
    long = stop == 0
    if long.any():
        _finish(buffer, at, value, ends, np.flatnonzero(long))
    return value, ends


def _finish(buffer: Buffer, at: I64, value: I64, ends: I64, rows: I64) -> None:
    """The ninth and tenth byte of the numbers that have them."""
    place = at[rows] + _WORD_BYTES
    ninth = buffer.data[place].astype(np.uint64)
    tenth = buffer.data[place + 1].astype(np.uint64)
    tenth[ninth < _MORE] = 0
    if (tenth >= _MORE).any():
        where = int(at[rows][tenth >= _MORE][0]) + buffer.base
        raise FormatError(f"a number at byte {where} has more than ten bytes")
    high = ((ninth & np.uint64(_DATA)) << np.uint64(56)) | (tenth << np.uint64(63))
    value[rows] |= high.view(np.int64)
    ends[rows] = place + 1 + (ninth >= _MORE)


def decode_small(buffer: Buffer, at: I64) -> tuple[I64, I64]:
    """Like ``decode``, faster where all numbers have one byte: ids, lengths."""
    low = buffer.data[at]
    if len(low) and low.max() >= _MORE:
        return decode(buffer, at)
    return low.astype(np.int64), at + 1


def number_field(buffer: Buffer, at: I64, ends: I64, tag: int, *, small: bool = False) -> tuple[I64, I64, Bool]:
    """An integer field of each message where it comes next, else 0; where the field after it begins; who has it.

    Shapes: ``at``, ``ends`` int64[message]: where the next field begins, and where the message ends. ``small``: most
    numbers take one or two bytes.
    """
    read = decode_small if small else decode
    has: Bool = buffer.data[at] == tag
    has &= at < ends
    if has.all():
        value, after = read(buffer, at + 1)
        return value, after, has
    value, after = np.zeros(len(at), np.int64), at.copy()
    some = np.flatnonzero(has)
    value[some], after[some] = read(buffer, at[some] + 1)
    return value, after, has


def bytes_field(buffer: Buffer, at: I64, ends: I64, tag: int) -> tuple[I64, I64, Bool]:
    """Where a field of bytes begins and ends in each message where it comes next, else ``at`` twice; who has it.

    Shapes as those of ``number_field``. One that would reach beyond its message is as if it were not there.
    """
    size, first, has = number_field(buffer, at, ends, tag, small=True)
    last = first + size
    has &= (size >= 0) & (last <= ends)
    return np.where(has, first, at), np.where(has, last, at), has
