"""How often a loop of a graph runs its body, where the graph shows it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables

from stepscope.derive.graph import loop_turns
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.graph.loop_turns import LoopTurns


def counting(*, start: int = 0, limit: int = 32, outside: bool = False, ends: str = "", adds: int = 0) -> Tables:
    """A loop that counts.

    Args:
        start: where it begins.
        limit: what it counts up to.
        outside: this number is given to it.
        ends: a type of op that ends it as well.
        adds: number that its body adds; 0: not shown.
    """
    tables = Tables()
    step, body, cond = tables.graph(), tables.graph("body"), tables.graph("cond")
    loop = step.op("while", "While", step.number("from", start), step.number("to", limit), outputs="int32[];int32[]")
    step.call(loop, body, "body")
    step.call(loop, cond, "cond")
    if adds:
        counter, _ = (body.op(name, "Placeholder", outputs="int32[]") for name in ("turn", "most"))
        body.op("next", "AddV2", counter, body.number("step", adds), outputs="int32[]")
    turn, most = (cond.op(name, "Placeholder", outputs="int32[]") for name in ("turn", "most"))
    less = cond.op("less", "Less", turn, most if outside else cond.number("y", limit), outputs="bool[]")
    if ends:
        less = cond.op("ends", ends, less, outputs="bool[]")
    cond.op("result", "Identity", less, outputs="bool[]")
    return tables


def turns(tables: Tables) -> LoopTurns | None:
    index = GraphIndex(tables.worker())
    return loop_turns.build(index, int(index.table.of_types("While")[0]))


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (counting(), LoopTurns(32, sure=True)),
        (counting(outside=True), LoopTurns(32, sure=True)),
        (counting(ends="StatelessIf"), LoopTurns(32, sure=False)),
        (counting(start=4), None),
        (counting(start=1, adds=1), LoopTurns(31, sure=True)),
        (counting(adds=3), LoopTurns(11, sure=True)),
        (counting(start=4, adds=-1), None),
        (counting(limit=-1), None),
    ],
    ids=["constant", "given", "may-end-early", "starts-later", "from-one", "in-threes", "downwards", "no-limit"],
)
def test_a_counter_is_compared_with_a_number(tables: Tables, found: LoopTurns | None) -> None:
    """What else may end the loop leaves the number as the most; where it starts elsewhere its step must be known."""
    assert turns(tables) == found


def test_the_loop_of_a_gradient_takes_as_many_turns() -> None:
    """Its condition compares with what the forward loop has counted, which the graph does not show."""
    tables = counting()
    step = tables.graphs[0][0]
    step.op("gradient_tape/while_grad", "StatelessWhile", outputs="int32[]")
    index = GraphIndex(tables.worker())
    assert loop_turns.build(index, int(index.table.of_types("StatelessWhile")[0])) == LoopTurns(32, sure=True)
