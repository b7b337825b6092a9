"""An op of a trace is found again as the node that it is."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Node, Tables

from stepscope.derive.graph.index import NOT_FOUND, GraphIndex


def found(index: GraphIndex, name: str, op_type: str = "") -> tuple[int, str] | None:
    """(graph, name) of the node that an op of a trace is."""
    row = index.node_of(name, op_type)
    return None if row == NOT_FOUND else (int(index.table.graph[row]), index.table.name_of(row))


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """A step that calls a function, with a loop and a branch in it, as Keras makes them."""
    tables = Tables()
    outer, step, body, branch = (tables.graph(role) for role in ("function", "function", "body", "then_branch"))
    outer.call(outer.op("StatefulPartitionedCall", "StatefulPartitionedCall"), step)
    step.op("model/dense/MatMul", "MatMul")
    step.op("model/dense/Relu", "Relu")
    step.op("model/dense", "Identity")
    step.call(step.op("model/map/while", "While"), body, "body")
    body.op("model/map/while/mul", "Mul")
    body.call(body.op("model/map/while/cond", "If"), branch, "then_branch")
    branch.op("add", "AddV2")
    data = tables.graph()
    data.op("add", "Add")
    return GraphIndex(tables.worker())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("StatefulPartitionedCall/model/dense/MatMul", (2, "model/dense/MatMul")),
        ("StatefulPartitionedCall/model/map/while/body/_12/model/map/while/mul", (3, "model/map/while/mul")),
        ("StatefulPartitionedCall/model/map/while/body/_12/model/map/while/cond/then/_3/add", (4, "add")),
        ("StatefulPartitionedCall", (1, "StatefulPartitionedCall")),
        # without the call that Python made
        ("model/dense/Relu", (2, "model/dense/Relu")),
        # made by the optimizer out of the node of that name
        ("StatefulPartitionedCall/model/dense/MatMul-0-TransposeNHWCToNCHW-LayoutOptimizer", (2, "model/dense/MatMul")),
        ("StatefulPartitionedCall/model/dense/MatMul/_5__cf__5", (2, "model/dense/MatMul")),
        ("ArithmeticOptimizer/FoldMultiply_model/dense/MatMul", (2, "model/dense/MatMul")),
        # of a part of which nothing is known: what it belongs to
        ("StatefulPartitionedCall/model/dense/MatMul/eigen", (2, "model/dense/MatMul")),
        ("StatefulPartitionedCall/model/dense/BiasAdd", (2, "model/dense")),
        ("_Send", None),
        ("other/name", None),
    ],
)
def test_names(index: GraphIndex, name: str, expected: tuple[int, str] | None) -> None:
    """A name is followed through calls, loops and branches, and cut where nothing matches."""
    assert found(index, name) == expected


def test_types_decide_between_graphs(index: GraphIndex) -> None:
    """Of two nodes of one name the one of that type; of no type the one of a graph that Python runs."""
    assert found(index, "add", "Add") == (5, "add")
    assert found(index, "add", "AddV2") == (4, "add")
    assert found(index, "add") == (5, "add")


def test_a_loop_in_the_copy_of_a_differentiated_function() -> None:
    """Its node has a number more there; where the function has a loop of that very name, that one counts."""
    tables = Tables()
    step, function, body = tables.graph(), tables.graph(), tables.graph("body")
    step.call(step.op("call", "PartitionedCall"), function)
    function.call(function.op("while", "While"), body, "body")
    inside = body.op("while/MatMul", "MatMul")
    name = "call/while_11/body/_40/while/MatMul"
    assert found(GraphIndex(tables.worker()), name) == (body.id, inside.name)
    other = tables.graph("body")
    function.call(function.op("while_11", "While"), other, "body")
    other.op("while/MatMul", "MatMul")
    assert found(GraphIndex(tables.worker()), name) == (other.id, inside.name)


def forward(tables: Tables, gradient: Node) -> str | None:
    """Name of the node whose gradient a node computes."""
    index = GraphIndex(tables.worker())
    row = index.forward_of(index.node_of(gradient.name))
    return None if row == NOT_FOUND else index.table.name_of(row)


def test_gradient_named_after_the_node() -> None:
    """The tape names gradients by the node, the older API with ``_grad``."""
    tables = Tables()
    graph = tables.graph()
    graph.op("model/dense/MatMul", "MatMul")
    assert forward(tables, graph.op("gradient_tape/model/dense/MatMul/MatMul_1", "MatMul")) == "model/dense/MatMul"
    assert forward(tables, graph.op("gradients/model/dense/MatMul_grad/MatMul", "MatMul")) == "model/dense/MatMul"


def test_gradient_in_a_loop() -> None:
    """The gradient of a loop's body is a body of its own: it leads to the forward one."""
    tables = Tables()
    graph, body, back = tables.graph(), tables.graph("body"), tables.graph("body")
    graph.call(graph.op("while", "While"), body, "body")
    graph.call(graph.op("gradient_tape/while/while_grad", "While"), back, "body")
    body.op("while/MatMul", "MatMul", line=7)
    assert (
        forward(tables, back.op("gradient_tape/while/gradients/while/MatMul_grad/MatMul", "MatMul")) == "while/MatMul"
    )
    assert forward(tables, back.op("gradient_tape/while/gradients/AddN", "AddN")) == "while"
    product = back.op("gradient_tape/while/gradients/while/MatMul_grad/MatMul_1", "MatMul")
    assert forward(tables, back.op("gradient_tape/while/gradients/AddN_1", "AddN", product)) == "while/MatMul"


def test_gradient_by_what_it_takes() -> None:
    """Where only the scope is in the name, what the gradient takes tells which node of the scope it is of."""
    tables = Tables()
    graph = tables.graph()
    first = graph.op("model/block/Tanh", "Tanh", line=5)
    graph.op("model/block/add", "AddV2", first, line=6)
    assert forward(tables, graph.op("gradient_tape/model/block/TanhGrad", "TanhGrad", first)) == "model/block/Tanh"
    # neither name nor inputs tell, and two lines made the scope
    assert forward(tables, graph.op("gradient_tape/model/block/Tile", "Tile")) is None


def test_gradient_by_a_scope_of_one_maker() -> None:
    """A scope that one line and one layer made stands for any gradient in it."""
    tables = Tables()
    graph = tables.graph()
    layer = tables.layer("norm")
    graph.op("model/norm/mean", "Mean", layer=layer)
    graph.op("model/norm/sub", "Sub", layer=layer)
    assert forward(tables, graph.op("gradient_tape/model/norm/Tile", "Tile")) == "model/norm/mean"


def test_gradient_in_python() -> None:
    """The gradient that Python made of a function leads into that function."""
    tables = Tables()
    graph = tables.graph()
    other = tables.graph()
    other.op("MatMul", "MatMul", line=1)
    graph.op("MatMul", "MatMul", line=9)
    back = tables.graph("gradient", of=graph.id)
    node = back.op("gradients/MatMul_grad/MatMul", "MatMul")
    index = GraphIndex(tables.worker())
    assert int(index.table.line[index.forward_of(index.node_of(f"PartitionedCall/{node.name}"))]) == 9
