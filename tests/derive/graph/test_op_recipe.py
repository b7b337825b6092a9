"""Recipes of ops: what is needed to build one alone, from the nodes of a graph."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Graph, Tables

from stepscope.derive.graph import op_recipe
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import GraphIndex
from stepscope.model.session.replays import Recipe

CONV = '{"strides":[1,1,1,1],"padding":"SAME","explicit_paddings":[],"data_format":"NHWC","dilations":[1,1,1,1]}'
KEEP = '{"keep_dims":false}'


@pytest.fixture(name="graph")
def _graph() -> Graph:
    return Tables().graph()


def build(graph: Graph, name: str, ran: str, samples: int = 0) -> Recipe:
    """The recipe of the op of a name."""
    index = GraphIndex(graph.tables.worker())
    return op_recipe.build(index, FullShapes(index, samples), index.node_of(name, ran), ran)


def test_a_fused_op_is_built_of_its_nodes(graph: Graph) -> None:
    """The op carries the name of its last node; the first one does the work."""
    data, weights = graph.op("x", "Placeholder", outputs="float32[4,8,8,3]"), graph.variable("k", "float32[3,3,3,5]")
    conv = graph.op("conv", "Conv2D", data, weights, outputs="float32[4,8,8,5]", attributes=CONV)
    bias = graph.op(
        "bias", "BiasAdd", conv, graph.variable("b", "float32[5]"), outputs="float32[4,8,8,5]",
        attributes='{"data_format":"NHWC"}',
    )  # fmt: skip
    graph.op("Relu", "Relu", bias, outputs="float32[4,8,8,5]")
    found = build(graph, "Relu", "_MklNativeFusedConv2D")
    assert [node.type for node in found.nodes] == ["Conv2D", "BiasAdd", "Relu"]
    assert [given.shape for given in found.inputs] == [(4, 8, 8, 3), (3, 3, 3, 5), (5,)]
    assert found.type == "Conv2D"


def test_an_open_batch_is_that_of_the_samples(graph: Graph) -> None:
    """An unknown first dimension comes from the data, also through a reshape."""
    data = graph.op("x", "Placeholder", outputs="float32[?,4,8]")
    rows = graph.op("rows", "Reshape", data, outputs="float32[?,8]")
    graph.op("Tanh", "Tanh", rows, outputs="float32[?,8]")
    assert build(graph, "Tanh", "Tanh", samples=16).inputs[0].shape == (64, 8)
    with pytest.raises(op_recipe.NotReplayableError, match="shape"):
        build(graph, "Tanh", "Tanh")


def test_axes_follow_from_shapes_or_constants(graph: Graph) -> None:
    """A reduction has the axes of its constant, else those that its output lacks."""
    data = graph.op("x", "Placeholder", outputs="float32[4,6,8]")
    known = graph.op("axes", "Const", outputs="int32[1]", attributes='{"value":[1]}')
    open_axes = graph.op("any", "Placeholder", outputs="int32[2]")
    graph.op("one", "Sum", data, known, outputs="float32[4,8]", attributes=KEEP)
    graph.op("two", "Sum", data, open_axes, outputs="float32[6]", attributes=KEEP)
    assert build(graph, "one", "Sum").inputs[1].values == (1,)
    assert build(graph, "two", "Sum").inputs[1].values == (0, 2)


def test_indices_stay_within_their_table(graph: Graph) -> None:
    """A gather of a variable's rows reads a tensor of its shape, at indices below its length."""
    handle = graph.op("table", "Placeholder", outputs="resource[]")
    graph.variables.append((handle.number, "table:0", "float32[50,8]", True))
    words = graph.op("words", "Placeholder", outputs="int64[7]")
    graph.op("look", "ResourceGather", handle, words, outputs="float32[7,8]", attributes='{"batch_dims":0}')
    found = build(graph, "look", "ResourceGather")
    assert found.nodes[0].type == "GatherV2"
    assert found.inputs[0].shape == (50, 8)
    assert found.inputs[1].below == 50


@pytest.mark.parametrize(
    ("kind", "why"),
    [("Transpose", "numbers of an input"), ("PyFunc", "not replayed"), ("MatMul", "attributes")],
)
def test_what_cannot_be_built_is_no_proof(graph: Graph, kind: str, why: str) -> None:
    """An unknown permutation, an unknown type, an op whose attributes an older session lacks."""
    data = graph.op("x", "Placeholder", outputs="float32[8,8]")
    other = graph.op("y", "Placeholder", outputs="int32[2]" if kind == "Transpose" else "float32[8,8]")
    graph.op("op", kind, data, other, outputs="float32[8,8]")
    with pytest.raises(op_recipe.NotReplayableError, match=why):
        build(graph, "op", kind)


def test_an_op_replaced_by_another_is_none_of_its_node(graph: Graph) -> None:
    """A library's op of several nodes that are no known fusion cannot be built."""
    graph.op("Exp", "Exp", graph.op("x", "Placeholder"), outputs="float32[32,64]")
    with pytest.raises(op_recipe.NotReplayableError, match="ran as UnaryOpsComposition"):
        build(graph, "Exp", "_UnaryOpsComposition")
