"""Writes tf.data's ModelProto: tests choose gaps and stage times themselves (fields:
readers.iterator_model)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from stepscope.readers.iterator_model import Node


def varint(value: int) -> bytes:
    """A number, seven bits a byte, least first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer field."""
    return varint(field << 3) + varint(value)


def message(field: int, body: bytes) -> bytes:
    """A nested message, a text or packed numbers."""
    return varint(field << 3 | 2) + varint(len(body)) + body


def double(field: int, value: float) -> bytes:
    """A float64 field."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def node(stage: Node) -> bytes:
    """One stage."""
    parts = [
        number(1, stage.id),
        message(2, stage.name.encode()),
        number(3, 1),
        number(4, stage.buffered_bytes),
        number(5, stage.buffered_elements),
        number(7, stage.bytes_produced),
        number(8, stage.num_elements),
        number(9, stage.processing_ns),
        *(message(11, message(1, name.encode()) + double(2, value)) for name, value in stage.parameters.items()),
        *(number(14, i) for i in stage.inputs),
        double(16, 1.0),
    ]
    return b"".join(parts)


def model(nodes: Sequence[Node], output: int, gaps_us: Sequence[int], *, packed: bool = True) -> bytes:
    """A whole ModelProto; the map's entries carry the node's id as key."""
    entries = [message(1, number(1, n.id) + message(2, node(n))) for n in nodes]
    if packed:
        gaps = message(6, b"".join(varint(g) for g in gaps_us)) if gaps_us else b""
    else:
        gaps = b"".join(number(6, g) for g in gaps_us)
    return b"".join(entries) + number(2, output) + gaps
