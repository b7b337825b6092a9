"""The distinction of protocol buffers, which do not name their kind: by the numbers of the fields that they hold."""

from __future__ import annotations

from stepscope.readers.protobuf.codec import BYTES, VARINT, varint
from stepscope.readers.protobuf.wire_fields import fields
from stepscope.tables.errors import FormatError

_FIELD_1 = 0x0A
"""Tag of a message in field 1."""
_OF_PACKET = frozenset({(8, VARINT), (10, VARINT), (11, BYTES), (60, BYTES)})
"""Timestamp, sequence, event and track of a TracePacket. Source: perfetto, protos/perfetto/trace/trace_packet.proto."""


def first_inner_tag(head: bytes) -> int | None:
    """The first byte of the message in field 1 that a file begins with; None if it begins otherwise."""
    inner = _inner(head)
    return None if inner is None else head[inner]


def second_inner_tag(head: bytes) -> int | None:
    """The first byte of the message that is first in the message in field 1; None if there is none."""
    inner = _inner(head)
    return None if inner is None else first_inner_tag(head[inner:])


def perfetto(head: bytes) -> bool:
    """Whether a file begins as a trace of Perfetto: messages in field 1, with the numbers of its packets' fields."""
    found: set[tuple[int, int]] = set()
    view = memoryview(head)
    try:
        for number, _, first, last in fields(view, 0, len(head)):
            if number != 1:
                return False
            found |= {(inner, wire) for inner, wire, *_ in fields(view, first, last)}
    except FormatError:
        pass  # the beginning of a file ends within a packet
    return bool(found & _OF_PACKET)


def _inner(head: bytes) -> int | None:
    """Where the message in field 1 begins."""
    if head[:1] != bytes([_FIELD_1]):
        return None
    try:
        _, inner = varint(head, 1)
    except FormatError:
        return None
    return inner if inner < len(head) else None
