"""Denormal weights of models in ONNX's format."""

from __future__ import annotations

import numpy as np
import pytest
from tests.readers.onnx_bytes import DOUBLE, FLOAT, model

from stepscope.readers import onnx_weights
from stepscope.tables.errors import FormatError

TINY = np.finfo(np.float32).tiny


@pytest.mark.parametrize("raw", [True, False])
def test_only_denormal_numbers_count(raw: bool) -> None:
    """Zero, the least normal number, infinity and NaN are none."""
    values = np.array([0.0, -0.0, TINY, -TINY, TINY / 2, -1e-45, 1.0, np.inf, np.nan], np.float32)
    read = onnx_weights.read_bytes(memoryview(model({"w": values}, raw=raw)), "m.onnx")
    assert (read.model, read.floats, read.denormal) == ("m.onnx", 9, 2)
    assert [(one.node, one.op, one.floats, one.denormal) for one in read.nodes] == [("w_conv", "Conv", 9, 2)]


def test_nodes_with_most_come_first() -> None:
    few, many, none = (np.array([1e-40] * count + [1.0] * (4 - count), np.float32) for count in (1, 3, 0))
    read = onnx_weights.read_bytes(memoryview(model({"few": few, "none": none, "many": many})), "m.onnx")
    assert [one.node for one in read.nodes] == ["many_conv", "few_conv"]
    assert (read.floats, read.denormal) == (12, 4)


def test_other_types_are_not_read() -> None:
    values = np.full(4, 1e-40, np.float32)
    assert onnx_weights.read_bytes(memoryview(model({"w": values}, kind=DOUBLE)), "m.onnx").floats == 0
    assert onnx_weights.read_bytes(memoryview(model({"w": values}, kind=FLOAT)), "m.onnx").floats == 4


@pytest.mark.parametrize("data", [b"", b"\x3a", b"PK\x03\x04zip", b"\x08\x08"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        onnx_weights.read_bytes(memoryview(data), "m.onnx")


def test_what_onnx_writes() -> None:
    """The package's own model, with weights as floats and as bytes."""
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, pytest.importorskip("onnx.numpy_helper")
    values = np.array([[1e-41, 2.0], [3e-45, 0.0]], np.float32)
    weights = [
        numpy_helper.from_array(values, "a"),
        helper.make_tensor("b", onnx.TensorProto.FLOAT, [2, 2], values.ravel().tolist()),
    ]
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["x", "a"], ["m"], name="first"), helper.make_node("MatMul", ["m", "b"], ["y"])]
    graph = helper.make_graph(nodes, "g", [info("x", 1, [1, 2])], [info("y", 1, [1, 2])], weights)
    data = helper.make_model(graph).SerializeToString()
    read = onnx_weights.read_bytes(memoryview(data), "m.onnx")
    assert (read.floats, read.denormal) == (8, 4)
    assert [(one.node, one.op, one.denormal) for one in read.nodes] == [("first", "MatMul", 2), ("MatMul", "MatMul", 2)]
