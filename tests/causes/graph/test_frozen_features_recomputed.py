"""What comes of the batch and of weights that stay, followed through the graphs of a step."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Graph, Node, Tables

from stepscope.causes.graph import frozen_features_recomputed
from stepscope.derive.graph.index import GraphIndex

IMAGES = "float32[?,32,32,3]"


def found(tables: Tables) -> list[str]:
    """Names of the nodes of frozen layers."""
    index = GraphIndex(tables.worker())
    layers = frozen_features_recomputed.build(index, index.graphs)
    return [index.table.name_of(row) for row in layers.nodes] if layers is not None else []


def _batch(graph: Graph, outputs: str = IMAGES) -> Node:
    iterator = graph.op("iterator", "Placeholder", outputs="resource[]")
    return graph.op("next", "IteratorGetNext", iterator, outputs=outputs)


def _step(graph: Graph, x: Node, *, norm: bool = False, statistics: bool = False) -> None:
    """A frozen convolution, a normalisation behind it, and a head that is trained."""
    kernel = graph.variable("conv/kernel", "float32[3,3,3,8]")
    x = graph.op("conv", "Conv2D", x, kernel, outputs="float32[?,32,32,8]")
    if norm:
        scale = graph.variable("norm/gamma", "float32[8]")
        x = graph.op("norm", "FusedBatchNormV3", x, scale, outputs="float32[?,32,32,8];float32[8];float32[8]")
    if statistics:
        mean = graph.variable("norm/moving_mean", "float32[8]", trainable=False)
        handle = Node(mean.graph, mean.number - 1, "norm/moving_mean/resource")
        graph.op("norm/update", "AssignSubVariableOp", handle, (x, 1))
    second = graph.variable("deep/kernel", "float32[3,3,8,8]")
    x = graph.op("deep", "Conv2D", x, second, outputs="float32[?,32,32,8]")
    read = graph.variable("head/kernel", "float32[8,4]")
    out = graph.op("head", "MatMul", x, read, outputs="float32[?,4]")
    back = graph.op("gradient_tape/head/MatMul", "MatMul", x, out)
    graph.op("sgd", "AssignSubVariableOp", Node(read.graph, read.number - 1, "head/kernel/resource"), back)


@pytest.mark.parametrize(
    ("statistics", "names"),
    [(False, ["conv", "norm", "deep"]), (True, ["conv"])],
    ids=["moving-averages", "own-statistics"],
)
def test_a_batch_normalisation_that_takes_its_own_statistics_mixes_examples(
    *, statistics: bool, names: list[str]
) -> None:
    """Its outputs differ with the other examples of the batch: what lies behind it has to run."""
    tables = Tables()
    graph = tables.graph()
    _step(graph, _batch(graph), norm=True, statistics=statistics)
    assert found(tables) == names


@pytest.mark.parametrize("random", [False, True])
def test_a_batch_that_another_graph_hands_on(*, random: bool) -> None:
    """As Keras 3 calls the step: its argument is the iterator's batch, unless the caller augments it."""
    tables = Tables()
    outer, inner = tables.graph(), tables.graph()
    data = _batch(outer)
    if random:
        data = outer.op("flip", "Mul", data, outer.op("noise", "RandomUniform", data, outputs=IMAGES), outputs=IMAGES)
    _step(inner, inner.op("data", "Placeholder", outputs=IMAGES))
    outer.call(outer.op("call", "StatefulPartitionedCall", data), inner)
    assert found(tables) == ([] if random else ["conv", "deep"])


def test_a_called_graph_that_gives_the_same_each_time() -> None:
    """A saved model is a call: it counts with all that it calls, unless something in it is random."""
    for kind, names in (("Relu", ["call", "conv", "relu"]), ("RandomStandardNormal", [])):
        tables = Tables()
        graph, inner = tables.graph(), tables.graph("f", name="saved")
        batch, kernel = _batch(graph), graph.variable("saved/kernel", "float32[3,3,3,8]")
        handle = Node(kernel.graph, kernel.number - 1, "saved/kernel/resource")
        call = graph.op("call", "StatefulPartitionedCall", batch, handle, outputs="float32[?,4]")
        x, weights = inner.op("x", "Placeholder", outputs=IMAGES), inner.op("w", "Placeholder", outputs="resource[]")
        inner.op("relu", kind, inner.op("conv", "Conv2D", x, inner.op("read", "ReadVariableOp", weights)))
        graph.call(call, inner)
        read = graph.variable("head/kernel", "float32[4,4]")
        back = graph.op("gradient_tape/head/MatMul", "MatMul", call, graph.op("head", "MatMul", call, read))
        graph.op("sgd", "AssignSubVariableOp", Node(read.graph, read.number - 1, "head/kernel/resource"), back)
        assert set(names) <= set(found(tables))
        assert bool(found(tables)) is bool(names)
