"""tf.data's live model of an iterator: a serialised ``tensorflow.data.model.ModelProto``, read without TensorFlow.

Source: tensorflow/core/framework/model.proto (TensorFlow 2.17-2.21). Field numbers used here::

    ModelProto   nodes = 1 (map<int64, Node>), output = 2, gap_times = 6 (repeated uint64, microseconds)
    Node         id = 1, name = 2, autotune = 3, buffered_bytes = 4, buffered_elements = 5, bytes_consumed = 6,
                 bytes_produced = 7, num_elements = 8, processing_time = 9 (ns, self, cumulative), parameters = 11,
                 inputs = 14 (repeated int64), ratio = 16
    Parameter    name = 1, value = 2 (double), state_value = 3, tunable = 6

Anything else is skipped, so newer versions still read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepscope.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class ProtoError(SessionError):
    """The bytes are not a protocol buffer message, or are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One stage of the pipeline after tf.data's own rewriting. Counters are totals since the iterator was made."""

    id: int
    name: str
    num_elements: int = 0
    processing_ns: int = 0
    """Self time, summed over the stage's threads."""
    buffered_elements: int = 0
    parameters: dict[str, float] = field(default_factory=dict)
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IteratorModelData:
    """The tree of stages and the last gaps. ``gaps_us``: microseconds between the end of one GetNext and the start of
    the next, oldest first, at most the last 100."""

    nodes: dict[int, Node]
    output: int
    gaps_us: tuple[int, ...]


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, value) of one message.

    Raises:
        ProtoError: the message is damaged.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in {_FIXED64, _FIXED32}:
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtoError(f"iterator model: wire type {wire} at byte {at}, expected 0, 1, 2 or 5")
        if at + size > end:
            raise ProtoError(f"iterator model: field {number} needs {size} bytes at byte {at}, got {end - at}")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * shift)
        if not byte & 0x80:
            return value, at
    raise ProtoError(f"iterator model: number cut at byte {at} of {len(data)}")


def _numbers(wire: int, value: int | bytes) -> list[int]:
    """A repeated integer field, packed or not."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(number)
    return numbers if wire == _BYTES else []


def _text(value: int | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0


def parse(data: bytes) -> IteratorModelData:
    """Read one serialised ModelProto.

    Raises:
        ProtoError: the message is damaged.
    """
    nodes: dict[int, Node] = {}
    output = 0
    gaps: list[int] = []
    for number, wire, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            for entry, _, inner in fields(value):
                if entry == 2 and isinstance(inner, bytes):  # noqa: PLR2004 - the value of a map entry
                    node = _node(inner)
                    nodes[node.id] = node
        elif number == 2:  # noqa: PLR2004 - field numbers: module docstring
            output = _number(value)
        elif number == 6:  # noqa: PLR2004
            gaps.extend(_numbers(wire, value))
    return IteratorModelData(nodes=nodes, output=output, gaps_us=tuple(gaps))


def _node(data: bytes) -> Node:
    values: dict[int, int | bytes] = {}
    inputs: list[int] = []
    parameters: dict[str, float] = {}
    for number, wire, value in fields(data):
        if number == 14:  # noqa: PLR2004 - field numbers: module docstring
            inputs.extend(_numbers(wire, value))
        elif number == 11 and isinstance(value, bytes):  # noqa: PLR2004
            name, amount = _parameter(value)
            parameters[name] = amount
        else:
            values[number] = value
    return Node(
        id=_number(values.get(1, 0)),
        name=_text(values.get(2, b"")),
        buffered_elements=_number(values.get(5, 0)),
        num_elements=_number(values.get(8, 0)),
        processing_ns=_number(values.get(9, 0)),
        parameters=parameters,
        inputs=tuple(inputs),
    )


def _parameter(data: bytes) -> tuple[str, float]:
    name, value = "", 0.0
    for number, wire, raw in fields(data):
        if number == 1:
            name = _text(raw)
        elif number == 2 and wire == _FIXED64 and isinstance(raw, bytes):  # noqa: PLR2004
            (value,) = struct.unpack("<d", raw)
    return name, value
