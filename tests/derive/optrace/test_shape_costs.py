"""Shares of a step that are counted from shapes."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace.shape_costs import ShapeCosts

PLAIN = '{"transpose_a":false,"transpose_b":false}'
LONG_NS = 1e12
"""Of a step that takes far longer than its nodes."""


def products(second: str = "float32[512,512]") -> Tables:
    """Two products, of which the second is of this shape, and a view."""
    tables = Tables()
    step = tables.graph()
    given = step.op("x", "Placeholder", outputs="float32[512,512]")
    one = step.op("one", "MatMul", given, given, outputs="float32[512,512]", attributes=PLAIN)
    other = step.op("y", "Placeholder", outputs=second)
    step.op("two", "MatMul", one, other, outputs=second, attributes=PLAIN)
    return tables


def costs(tables: Tables, call_ns: float = 1.0, call_ratio: float = 1.0) -> ShapeCosts:
    graphs = [graph.id for graph, *_ in tables.graphs]
    return ShapeCosts(GraphIndex(tables.worker()), graphs, 0, call_ratio, call_ns)


def test_equal_products_take_half_each() -> None:
    """Bounds are wide: the odds by two; and all is a share of the step's call."""
    share = costs(products()).of_nodes([1])
    assert [share.low, share.high] == pytest.approx([1 / 3, 2 / 3], rel=0.01)
    part = costs(products(), call_ratio=0.5).of_nodes([1])
    assert part.high == pytest.approx(1 / 3, rel=0.01)


def test_what_the_step_takes_beyond_its_nodes_lowers_the_bound() -> None:
    """A step that takes far longer than its nodes may spend its time elsewhere."""
    assert costs(products(), LONG_NS).of_nodes([1]).low < 0.001


def test_products_of_unknown_shape_leave_all_shares_open() -> None:
    """Their work may be anything."""
    assert costs(products()).known
    assert not costs(products("float32[?,?]")).known


def test_nodes_of_a_loop_count_in_each_turn() -> None:
    """A loop whose number of iterations the graph does not show leaves all shares open."""
    for limit, known in ((32, True), (-1, False)):
        tables = Tables()
        step, body, cond = tables.graph(), tables.graph("body"), tables.graph("cond")
        loop = step.op("while", "While", step.number("from", 0), step.number("to", limit), outputs="int32[]")
        step.call(loop, body, "body")
        step.call(loop, cond, "cond")
        inner = body.op("inner", "Mul", outputs="float32[8]")
        cond.op("less", "Less", *(cond.op(name, "Placeholder", outputs="int32[]") for name in ("i", "n")))
        found = costs(tables)
        row = found.index.table.rows_of(inner.graph).start
        assert found.known is known
        assert found.turns([row]) == (limit if known else 1)
        assert found.costliest([row, row + 100_000][:1]) == [row]


@pytest.mark.parametrize(("kind", "known"), [("Unpack", True), ("While", False)])
def test_an_output_beyond_those_that_were_read(kind: str, known: bool) -> None:
    """Of a node with many outputs the first are read: those of an Unpack are alike, others may be anything."""
    tables = Tables()
    step = tables.graph()
    many = step.op("many", kind, outputs="float32[512,512];float32[512,512]")
    far = step.op("far", "Placeholder", outputs="float32[512,512]")
    step.op("product", "MatMul", (many, 8), far, outputs="float32[512,512]", attributes=PLAIN)
    assert costs(tables).known is known
