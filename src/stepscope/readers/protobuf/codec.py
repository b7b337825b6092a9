"""Protocol buffers on the wire, read and written field by field, without generated code.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10
_SIGN = 1 << 63
_SEVEN_BITS = 0x7F
_ONE_BYTE = [bytes([value]) for value in range(_SEVEN_BITS + 1)]


class ProtoError(FormatError):
    """Raised for bytes that are not a protocol buffer message, or are cut."""


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, value) of one message.

    Raises:
        ProtoError: the message is damaged.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in {FIXED64, FIXED32}:
            size = 8 if wire == FIXED64 else 4
        else:
            raise ProtoError(f"wire type {wire} at byte {at}, expected 0, 1, 2 or 5")
        if at + size > end:
            raise ProtoError(f"field {number} needs {size} bytes at byte {at}, got {end - at}")
        yield number, wire, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at byte ``at``, and the byte after it.

    Raises:
        ProtoError: it is cut, or longer than ten bytes.
    """
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * shift)
        if not byte & 0x80:
            return value, at
    raise ProtoError(f"number cut at byte {at} of {len(data)}")


def numbers(wire: int, value: int | bytes) -> list[int]:
    """A repeated integer field, packed or not.

    Raises:
        ProtoError: the message is damaged.
    """
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while wire == BYTES and at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def signed(value: int) -> int:
    """A varint of type int64 as a number."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value & _SIGN else value


def text(value: int | bytes) -> str:
    """A string field."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def number(value: int | bytes) -> int:
    """An integer field; 0 if the wire holds another type."""
    return value if isinstance(value, int) else 0


def encode_varint(value: int) -> bytes:
    """A number; negative ones as int64."""
    if 0 <= value <= _SEVEN_BITS:
        return _ONE_BYTE[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value > _SEVEN_BITS:
        out.append(value & _SEVEN_BITS | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_number(field: int, value: int) -> bytes:
    """An integer field; nothing for 0, which is the meaning of a missing field."""
    return encode_varint(field << 3 | VARINT) + encode_varint(value) if value else b""


def encode_bytes(field: int, value: bytes) -> bytes:
    """A string, a message, or another field with a length."""
    return encode_varint(field << 3 | BYTES) + encode_varint(len(value)) + value


def encode_packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated integer field."""
    return encode_bytes(field, b"".join(map(encode_varint, values)))
