"""Positions of the fields of a protocol buffer message, without copying: for files too large to decode.

``protobuf`` reads whole messages. Positions are absolute, so that an error names the byte of the file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stepscope.readers.protobuf.codec import BYTES, FIXED32, FIXED64, VARINT
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MORE = 0x80
_FIXED = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT_BYTES = 10
_MODULUS = 1 << 64

Field = tuple[int, int, int, int]
"""A field: (field number, wire type, first, last); for a varint its value and the position after it, else its bytes."""


def fields(data: memoryview | bytes | bytearray, first: int, last: int) -> Iterator[Field]:
    """The fields of the message between two positions.

    Raises:
        FormatError: the message is damaged or cut.
    """
    at = first
    while at < last:
        key = data[at]
        at += 1
        if key >= _MORE:
            key, at = varint(data, at - 1, last)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise FormatError(f"field number 0 at byte {at - 1}")
        if wire == VARINT:
            if at < last and data[at] < _MORE:  # inlined: most numbers are small
                value = data[at]
                at += 1
            else:
                value, at = varint(data, at, last)
            yield number, VARINT, value, at
            continue
        if wire == BYTES:
            if at < last and data[at] < _MORE:
                size = data[at]
                at += 1
            else:
                size, at = varint(data, at, last)
        else:
            size = _FIXED.get(wire, -1)
        end = at + size
        if size < 0:
            raise FormatError(f"wire type {wire} at byte {at - 1}, which no trace has")
        if end > last:
            raise FormatError(f"field {number} needs {size} bytes at byte {at}, there are {last - at}")
        yield number, wire, at, end
        at = end


def varint(data: memoryview | bytes | bytearray, at: int, last: int) -> tuple[int, int]:
    """The number at a position, and the position after it.

    Raises:
        FormatError: it is cut, or has more than ten bytes.
    """
    value = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        if at >= last:
            raise FormatError(f"cut within a number at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value & (_MODULUS - 1), at
    raise FormatError(f"a number at byte {at} has more than {_MAX_VARINT_BYTES} bytes")


def double(data: memoryview | bytes | bytearray, first: int) -> float:
    """The double at a position."""
    (value,) = struct.unpack_from("<d", data, first)
    return float(value)
