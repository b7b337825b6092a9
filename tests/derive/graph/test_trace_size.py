"""How many events a trace of one step would have, by its graphs."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Graph, Tables

from stepscope.derive.graph import trace_size
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.graph.trace_size import MAX_CORES, NODE_EVENTS, OP_NS, POOL_NS


def events(tables: Tables, call_ns: float = 0.0, cores: int = 1) -> float:
    """Of one step that runs all of the graphs."""
    worker = tables.worker()
    return trace_size.per_step(GraphIndex(worker), [graph.id for graph, *_ in tables.graphs], call_ns, cores)


def looping(tables: Tables, step: Graph, length: str, *, nodes: int = 10) -> None:
    """A loop over a tensor in ``step``, with ``nodes`` in its body, and its gradient with as many."""
    over = step.op("list", "TensorListFromTensor", step.op("x", "Transpose", outputs=f"float32[{length},?,48]"))
    loop = step.op("while", "While", over)
    for caller in (loop, step.op("while_grad", "StatelessWhile", loop)):
        body = tables.graph("body", name=f"{caller.name}_body")
        step.call(caller, body, "body")
        for i in range(nodes):
            body.op(f"{caller.name}/{i}")
        body.op(f"{caller.name}/argument", "Placeholder")


def test_nodes_that_do_something_count_once() -> None:
    """Arguments, constants and what hands on do not; those of functions that are called do."""
    tables = Tables()
    step, inner = tables.graph(), tables.graph("f", name="inner")
    for kind in ("Const", "Placeholder", "NoOp", "Identity", "Mul", "MatMul"):
        step.op(kind, kind)
    step.call(step.op("call", "StatefulPartitionedCall"), inner)
    inner.op("add", "AddV2")
    assert events(tables) == pytest.approx(4 * NODE_EVENTS)


def test_nodes_of_a_loop_count_in_each_turn() -> None:
    """As many as the tensor is long that it goes through; its gradient takes as many turns."""
    tables = Tables()
    looping(tables, tables.graph(), "200")
    assert events(tables) == pytest.approx(NODE_EVENTS * (4 + 2 * 200 * 10))


def test_turns_that_are_not_known_are_bounded_by_time() -> None:
    """Of the step's call; where all turns are known the time says nothing."""
    tables = Tables()
    looping(tables, tables.graph(), "?")
    pools = 1_000 * OP_NS / POOL_NS
    assert events(tables, 1_000 * OP_NS) == pytest.approx(1_000 + pools)
    known = Tables()
    looping(known, known.graph(), "200")
    assert events(known, 1_000 * OP_NS) == pytest.approx(events(known) + pools)


def test_thread_pools_count_by_time_and_cores() -> None:
    """Large ops are split over the cores while the call lasts, however few nodes there are."""
    tables = Tables()
    tables.graph().op("matmul", "MatMul")
    assert events(tables, 100 * POOL_NS, 2) == pytest.approx(NODE_EVENTS + 200)
    assert events(tables, 100 * POOL_NS, 64) == pytest.approx(NODE_EVENTS + 100 * MAX_CORES)
