"""The distinction of two kinds of protocol buffers."""

from __future__ import annotations

from stepscope.errors import FormatError
from stepscope.formats.protobuf.codec import varint

_FIELD_1 = 0x0A
"""Tag of a message in field 1."""


def first_inner_tag(head: bytes) -> int | None:
    """The first byte of the message in field 1 that a file begins with; None if it begins otherwise."""
    if head[:1] != bytes([_FIELD_1]):
        return None
    try:
        _, inner = varint(head, 1)
    except FormatError:
        return None
    return head[inner] if inner < len(head) else None
