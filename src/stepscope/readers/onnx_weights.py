"""The weights of a model in ONNX's format: how many of them are denormal, and of which nodes.

Source: onnx 1.23.2, onnx/onnx.proto (ModelProto, GraphProto, NodeProto, TensorProto).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from stepscope.readers.protobuf.codec import BYTES
from stepscope.readers.protobuf.wire_fields import fields
from stepscope.tables.errors import FormatError
from stepscope.tables.nearby import ModelWeights, NodeWeights

if TYPE_CHECKING:
    from pathlib import Path

_GRAPH = 7
_NODE, _INITIALIZER = 1, 5
_INPUT, _NODE_NAME, _OP_TYPE = 1, 3, 4
_DATA_TYPE, _FLOAT_DATA, _NAME, _RAW_DATA = 2, 4, 8, 9
_FLOAT = 1
_EXPONENT, _MAGNITUDE = 0x7F800000, 0x7FFFFFFF
_PART = 1 << 22
"""Floats looked at at once."""
MAX_NODES = 8


def read_file(path: Path) -> ModelWeights:
    """The weights in single precision that a model's file holds; those in further files are not read.

    Raises:
        OSError: it cannot be read.
        FormatError: it is no such model, or damaged.
    """
    return read_bytes(memoryview(path.read_bytes()), path.name)


def read_bytes(data: memoryview, name: str) -> ModelWeights:
    """The same of bytes."""
    graph = [
        (first, last) for number, wire, first, last in fields(data, 0, len(data)) if (number, wire) == (_GRAPH, BYTES)
    ]
    if len(graph) != 1:
        raise FormatError(f"{name}: it has {len(graph)} graphs; expected one, as ONNX's models have")
    users: dict[str, tuple[str, str]] = {}
    floats: Counter[str] = Counter()
    denormal: Counter[str] = Counter()
    for number, wire, first, last in fields(data, *graph[0]):
        if (number, wire) == (_NODE, BYTES):
            node, op, inputs = _node(data, first, last)
            users.update({one: (node, op) for one in inputs if one not in users})
        elif (number, wire) == (_INITIALIZER, BYTES):
            tensor, count, tiny = _tensor(data, first, last)
            floats[tensor] += count
            denormal[tensor] += tiny
    nodes = [
        NodeWeights(
            node=users.get(tensor, (tensor, ""))[0],
            op=users.get(tensor, ("", ""))[1],
            floats=floats[tensor],
            denormal=tiny,
        )
        for tensor, tiny in denormal.most_common(MAX_NODES)
        if tiny
    ]
    return ModelWeights(model=name, floats=floats.total(), denormal=denormal.total(), nodes=tuple(nodes))


def _node(data: memoryview, first: int, last: int) -> tuple[str, str, list[str]]:
    """A node's name, or that of its first input without one; its type; its inputs."""
    name = op = ""
    inputs = []
    for number, wire, begin, end in fields(data, first, last):
        if wire != BYTES or number not in {_INPUT, _NODE_NAME, _OP_TYPE}:
            continue
        text = bytes(data[begin:end]).decode("utf-8", "replace")
        if number == _INPUT:
            inputs.append(text)
        elif number == _NODE_NAME:
            name = text
        else:
            op = text
    return name or op, op, inputs


def _tensor(data: memoryview, first: int, last: int) -> tuple[str, int, int]:
    """A tensor's name; how many floats in single precision it holds, and how many of them are denormal."""
    name, kind = "", 0
    held = []
    for number, wire, begin, end in fields(data, first, last):
        if number == _DATA_TYPE:
            kind = begin
        elif wire == BYTES and number == _NAME:
            name = bytes(data[begin:end]).decode("utf-8", "replace")
        elif wire == BYTES and number in {_FLOAT_DATA, _RAW_DATA}:
            held.append((begin, end))
    if kind != _FLOAT:
        return name, 0, 0
    count = tiny = 0
    for begin, end in held:
        bits = np.frombuffer(data[begin : end - (end - begin) % 4], "<u4")
        count += len(bits)
        for at in range(0, len(bits), _PART):
            part = bits[at : at + _PART]
            tiny += int(np.count_nonzero(((part & _EXPONENT) == 0) & ((part & _MAGNITUDE) != 0)))
    return name, count, tiny
