"""Protocol buffer wire format: many numbers at once.

A varint is read as one unaligned 8-byte word: its lowest clear continuation bit ends it, three rounds of shifts close
the gaps between its 7-bit groups. Longer ones (negative numbers, hashes) are completed byte by byte, in the few rows
that have them. Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from stepscope.tables.records import I64, Bool

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]

PADDING = 32
"""Number of zero bytes after the end of a buffer, so that words may be read at any position inside."""

_WORD_BYTES = 8
_STOP_BITS = np.uint64(0x8080_8080_8080_8080)
_DATA_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_CLOSE = (
    (np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
_BYTE_ONES = np.uint64(0x0101_0101_0101_0101)
"""Factor that counts masked bytes: the highest byte of the product is the number of bytes left."""
_ONE, _TOP_BYTE = np.uint64(1), np.uint64(56)
_MORE, _DATA = 0x80, 0x7F


class Buffer:
    """Bytes of a file that are read many at a time. Positions count from ``base``.

    ``data`` uint8[size + PADDING], the padding zero; ``words`` uint64[size + PADDING - 7]: the little-endian word that
    begins at each byte.
    """

    def __init__(self, content: bytes | bytearray, size: int, base: int = 0) -> None:
        """Wrap the first ``size`` bytes of ``content``, which begin at ``base`` of a file; ``PADDING`` zeros follow."""
        self.base = base
        self.size = size
        self.content = content
        padded = size + PADDING
        self.data: U8 = np.frombuffer(content, np.uint8, padded)
        self.words: U64 = np.ndarray(
            shape=(padded - _WORD_BYTES + 1,), dtype=np.dtype("<u8"), buffer=content, strides=(1,)
        )

    def text(self, first: int, last: int) -> str:
        """Decode UTF-8; invalid bytes are replaced."""
        return str(self.content[first:last], "utf-8", "replace")


def decode(buffer: Buffer, at: I64) -> tuple[I64, I64]:
    """The numbers that begin at ``at``, and the end of each.

    Shapes: ``at`` int64[number], each below the buffer's size; results int64[number].
    Numbers above 2**63 - 1 come as their two's complement.

    Raises:
        FormatError: a number has more than ten bytes. The caller must check that each ends where it may.
    """
    word = buffer.words[at]
    stop = ~word
    stop &= _STOP_BITS
    upto = stop - _ONE
    upto ^= stop  # the bits up to the lowest stop bit
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
    """Add the ninth and tenth byte of the numbers that have them."""
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
    """Like ``decode``, but faster if all numbers have one byte: ids, lengths."""
    low = buffer.data[at]
    if len(low) and low.max() >= _MORE:
        return decode(buffer, at)
    return low.astype(np.int64), at + 1


def number_field(buffer: Buffer, at: I64, ends: I64, tag: int, *, small: bool = False) -> tuple[I64, I64, Bool]:
    """An integer field of each message if it comes next, else 0; the start of the field after it; which messages have
    it.

    Shapes: ``at``, ``ends`` int64[message]: start of the next field, and end of the message. ``small``: most numbers
    take one or two bytes.
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
    """Start and end of a bytes field in each message if it comes next, else ``at`` twice; which messages have it.

    Shapes as for ``number_field``. A field that would reach beyond its message is treated as missing.
    """
    size, first, has = number_field(buffer, at, ends, tag, small=True)
    last = first + size
    has &= (size >= 0) & (last <= ends)
    return np.where(has, first, at), np.where(has, last, at), has
