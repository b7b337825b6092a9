"""tf.data's live model of an iterator: a serialised ``tensorflow.data.model.ModelProto``, read without TensorFlow.

Source: tensorflow/core/framework/model.proto (TensorFlow 2.17-2.21). Field numbers used here::

    ModelProto   nodes = 1 (map<int64, Node>), output = 2, gap_times = 6 (repeated uint64, microseconds)
    Node         id = 1, name = 2, autotune = 3, buffered_bytes = 4, buffered_elements = 5, bytes_consumed = 6,
                 bytes_produced = 7, num_elements = 8, processing_time = 9 (ns, self, cumulative), parameters = 11,
                 inputs = 14 (repeated int64), ratio = 16
    Parameter    name = 1, value = 2 (double), state_value = 3, tunable = 6

Other fields are skipped, so that newer versions can be read.
"""

from __future__ import annotations

import struct

from msgspec import Struct, field

from stepscope.readers.protobuf import codec
from stepscope.readers.protobuf.codec import fields, number, numbers, text


class Node(Struct, frozen=True, kw_only=True):
    """One stage of the pipeline after tf.data's own rewriting. Counters are totals since the iterator was made."""

    id: int
    name: str
    num_elements: int = 0
    bytes_produced: int = 0
    """Memory of the elements that it gave."""
    processing_ns: int = 0
    """Self time, summed over the stage's threads."""
    buffered_elements: int = 0
    buffered_bytes: int = 0
    """Memory of the elements that it holds: buffers, and a cache that is filled."""
    parameters: dict[str, float] = field(default_factory=dict)
    inputs: tuple[int, ...] = ()


class IteratorModelData(Struct, frozen=True, kw_only=True):
    """The tree of stages and the last gaps. ``gaps_us``: microseconds between the end of one GetNext and the start of
    the next, oldest first, at most the last 100."""

    nodes: dict[int, Node]
    output: int
    gaps_us: tuple[int, ...]
    complete: bool = False
    """Flag: the counters of stages that ended are in it, too. The live model drops them."""


def parse(data: bytes) -> IteratorModelData:
    """Read one serialised ModelProto.

    Raises:
        ProtoError: the message is damaged.
    """
    nodes: dict[int, Node] = {}
    output = 0
    gaps: list[int] = []
    for key, wire, value in fields(data):
        match key, value:
            case 1, bytes(entry):
                for part, _, inner in fields(entry):
                    match part, inner:
                        case 2, bytes(raw):
                            node = _node(raw)
                            nodes[node.id] = node
            case 2, _:
                output = number(value)
            case 6, _:
                gaps.extend(numbers(wire, value))
    return IteratorModelData(nodes=nodes, output=output, gaps_us=tuple(gaps))


def _node(data: bytes) -> Node:
    values: dict[int, int | bytes] = {}
    inputs: list[int] = []
    parameters: dict[str, float] = {}
    for key, wire, value in fields(data):
        match key, value:
            case 14, _:
                inputs.extend(numbers(wire, value))
            case 11, bytes(raw):
                name, amount = _parameter(raw)
                parameters[name] = amount
            case _:
                values[key] = value
    return Node(
        id=number(values.get(1, 0)),
        name=text(values.get(2, b"")),
        buffered_elements=number(values.get(5, 0)),
        buffered_bytes=number(values.get(4, 0)),
        num_elements=number(values.get(8, 0)),
        bytes_produced=number(values.get(7, 0)),
        processing_ns=number(values.get(9, 0)),
        parameters=parameters,
        inputs=tuple(inputs),
    )


def _parameter(data: bytes) -> tuple[str, float]:
    name, value = "", 0.0
    for key, wire, raw in fields(data):
        match key, wire, raw:
            case 1, _, _:
                name = text(raw)
            case 2, codec.FIXED64, bytes(double):
                (value,) = struct.unpack("<d", double)
    return name, value
