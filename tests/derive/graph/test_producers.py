"""Who makes what an op takes: through nodes that do not run, into functions and out of them, around loops."""

from __future__ import annotations

from tests.derive.graph_tables import Graph, Node, Tables

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.graph.producers import Producers


def made(tables: Tables, *, turns: bool = True) -> dict[str, dict[str, list[int]]]:
    """Op -> its makers among all ops that compute, with their outputs."""
    index = GraphIndex(tables.worker())
    table = index.table
    ran = {row for row in range(len(table)) if table.type_of(row) in {"MatMul", "Tanh", "Split"}}
    producers = Producers(index, turns=turns)
    return {
        table.name_of(row): {table.name_of(maker): slots for maker, slots in producers.makers(row, ran).items()}
        for row in ran
    }


def _function(tables: Tables) -> tuple[Graph, Graph, Node]:
    step, inner = tables.graph(of=1), tables.graph(of=2, name="cell")
    inner.op("other", "Placeholder")
    result = inner.op("inside", "Tanh", inner.op("given", "Placeholder"))
    inner.op("Identity", "Identity", result)
    before = step.op("before", "MatMul")
    call = step.op("call", "PartitionedCall", step.op("unused", "Const"), before)
    step.call(call, inner)
    return step, inner, call


def test_arguments_and_results_of_a_function_are_those_of_its_call() -> None:
    tables = Tables()
    step, _, call = _function(tables)
    step.op("after", "MatMul", call)
    assert made(tables) == {"before": {}, "inside": {"before": [0]}, "after": {"inside": [0]}}


def test_a_function_with_more_arguments_than_its_call_gives_is_not_followed() -> None:
    """An optimizer may have changed one of them: which argument is which input is not known then."""
    tables = Tables()
    step, inner, call = _function(tables)
    inner.op("added", "Placeholder")
    step.op("after", "MatMul", call)
    assert made(tables)["inside"] == {}


def test_the_turn_of_a_loop_takes_from_the_turn_before() -> None:
    """What a body makes goes to its own argument, to the condition, and out of the loop; only once where not asked."""
    tables = Tables()
    step, body, cond = tables.graph(of=1), tables.graph("body"), tables.graph("cond")
    next_one = body.op("next", "Tanh", body.op("product", "MatMul", body.op("state", "Placeholder")))
    body.op("Identity", "Identity", next_one)
    cond.op("Identity", "Identity", cond.op("small", "Tanh", cond.op("state", "Placeholder")))
    loop = step.op("while", "While", step.op("first", "MatMul"))
    step.call(loop, body, "body")
    step.call(loop, cond, "cond")
    step.op("after", "MatMul", loop)
    found = made(tables)
    assert found["product"] == {"first": [0], "next": [0]}
    assert found["small"] == {"first": [0], "next": [0]}
    assert found["after"] == {"next": [0]}
    assert made(tables, turns=False)["product"] == {"first": [0]}


def test_a_branch_does_not_take_the_condition_and_gives_its_result() -> None:
    tables = Tables()
    step = tables.graph(of=1)
    choice = step.op("choice", "If", step.op("asked", "Tanh"), step.op("value", "MatMul"))
    for name in ("then_branch", "else_branch"):
        branch = tables.graph(name)
        branch.op("Identity", "Identity", branch.op(name, "MatMul", branch.op("given", "Placeholder")))
        step.call(choice, branch, name)
    step.op("after", "Tanh", choice)
    found = made(tables)
    assert found["then_branch"] == found["else_branch"] == {"value": [0]}
    assert found["after"] == {"then_branch": [0], "else_branch": [0]}


def test_what_passes_many_tensors_mixes_none() -> None:
    """Gradients of all variables pass one node of an optimizer, each to its own update."""
    tables = Tables()
    step = tables.graph(of=1)
    passed = step.op("all", "IdentityN", step.op("one", "MatMul"), step.op("two", "MatMul"))
    step.op("first", "Tanh", (passed, 0))
    step.op("second", "Tanh", (passed, 1))
    found = made(tables)
    assert (found["first"], found["second"]) == ({"one": [0]}, {"two": [0]})


def test_which_output_is_taken_is_told() -> None:
    tables = Tables()
    step = tables.graph(of=1)
    parts = step.op("parts", "Split", outputs="float32[2];float32[2]")
    step.op("sum", "MatMul", (parts, 1), step.op("cast", "Cast", parts))
    assert made(tables)["sum"] == {"parts": [1, 0]}
