"""Many protocol buffer messages at once: each part of them is a column of bytes, joined row by row by numpy.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.records import F64, I64, Bool

U8 = npt.NDArray[np.uint8]
_SEVEN = np.uint64(7)
_AT_ONCE = 1 << 19
"""Bytes that are joined at a time, so that they stay in the processor's cache."""
_LOW, _MORE = np.uint64(0x7F), np.uint8(0x80)


class Piece(NamedTuple):
    """A part of each message. Shapes: both [message, byte]."""

    data: U8
    used: Bool
    """Which bytes are there."""
    size: I64
    """Bytes of each message: int64[message]."""


def varints(values: npt.NDArray[np.integer]) -> Piece:
    """Numbers; negative ones as int64."""
    rest = values.astype(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    data, used = np.empty((len(rest), width), np.uint8), np.empty((len(rest), width), np.bool_)
    used[:, 0] = True
    size = np.ones(len(rest), np.int64)
    for at in range(width):
        np.bitwise_and(rest, _LOW, out=data[:, at], casting="unsafe")
        if at + 1 < width:
            rest >>= _SEVEN
            more = rest != 0
            used[:, at + 1] = more
            data[:, at] |= more * _MORE
            size += more
    return Piece(data, used, size)


def fixed64(values: I64 | F64) -> Piece:
    """Numbers of eight bytes."""
    kind = "<f8" if values.dtype == np.float64 else "<i8"
    return _whole(np.ascontiguousarray(values, kind).view(np.uint8).reshape(-1, 8))


def constant(text: bytes, count: int) -> Piece:
    """The same bytes in each of ``count`` messages."""
    return _whole(np.broadcast_to(np.frombuffer(text, np.uint8), (count, len(text))))


def _whole(data: U8) -> Piece:
    return Piece(data, np.broadcast_to(np.True_, data.shape), np.broadcast_to(np.int64(data.shape[1]), len(data)))


def chosen(texts: Sequence[bytes]) -> Piece:
    """Texts of different lengths as rows, to be taken by number (``taken``)."""
    width = max(map(len, texts), default=0)
    data = np.frombuffer(b"".join(text.ljust(width, b"\0") for text in texts), np.uint8).reshape(len(texts), width)
    sizes = np.array([len(text) for text in texts], np.int64)
    return Piece(data, np.arange(width) < sizes[:, None], sizes)


def taken(rows: Piece, numbers: npt.NDArray[np.integer]) -> Piece:
    """A row of ``rows`` for each message."""
    return Piece(rows.data[numbers], rows.used[numbers], rows.size[numbers])


def spread(pieces: Sequence[Piece], positions: I64, count: int) -> Piece:
    """Pieces in a row at some of ``count`` messages, and nothing at the others."""
    width = sum(piece.data.shape[1] for piece in pieces)
    data, used = np.zeros((count, width), np.uint8), np.zeros((count, width), np.bool_)
    size = np.zeros(count, np.int64)
    data[positions] = np.hstack([piece.data for piece in pieces])
    used[positions] = np.hstack([piece.used for piece in pieces])
    size[positions] = sum(piece.size for piece in pieces)
    return Piece(data, used, size)


def with_length(head: bytes, inner: Sequence[Piece]) -> list[Piece]:
    """A field with a length: what stands before it with its tag, ``head``; the length, and ``inner``."""
    size = sum(piece.size for piece in inner)
    return [constant(head, len(inner[0].data)), varints(np.asarray(size)), *inner]


def joined(pieces: Sequence[Piece]) -> bytes:
    """All messages, one after the other, each of its pieces in a row."""
    count, width = len(pieces[0].data), sum(piece.data.shape[1] for piece in pieces)
    found = []
    step = max(1, _AT_ONCE // width)
    for first in range(0, count, step):
        part = slice(first, first + step)
        data = np.hstack([piece.data[part] for piece in pieces])
        found.append(data[np.hstack([piece.used[part] for piece in pieces])].tobytes())
    return b"".join(found)
