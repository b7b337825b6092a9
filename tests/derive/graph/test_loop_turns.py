"""How often a loop of a graph runs its body, where the graph shows it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables

from stepscope.derive.graph import loop_turns
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.graph.loop_turns import Turns


def counting(*, start: int = 0, limit: int = 32, outside: bool = False, ends: str = "") -> Tables:
    """A loop that counts; ``outside``: up to a number given to it; ``ends``: a type of op that ends it as well."""
    tables = Tables()
    step, body, cond = tables.graph(), tables.graph("body"), tables.graph("cond")
    loop = step.op("while", "While", step.number("from", start), step.number("to", limit), outputs="int32[];int32[]")
    step.call(loop, body, "body")
    step.call(loop, cond, "cond")
    turn, most = (cond.op(name, "Placeholder", outputs="int32[]") for name in ("turn", "most"))
    less = cond.op("less", "Less", turn, most if outside else cond.number("y", limit), outputs="bool[]")
    if ends:
        less = cond.op("ends", ends, less, outputs="bool[]")
    cond.op("result", "Identity", less, outputs="bool[]")
    return tables


def turns(tables: Tables) -> Turns | None:
    index = GraphIndex(tables.worker())
    return loop_turns.build(index, int(index.table.of_types("While")[0]))


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (counting(), Turns(32, sure=True)),
        (counting(outside=True), Turns(32, sure=True)),
        (counting(ends="StatelessIf"), Turns(32, sure=False)),
        (counting(start=4), None),
        (counting(limit=-1), None),
    ],
    ids=["constant", "given", "may-end-early", "starts-later", "no-limit"],
)
def test_a_counter_that_starts_at_zero_is_compared_with_a_number(tables: Tables, found: Turns | None) -> None:
    """What else may end the loop leaves the number as the most; a counter that starts elsewhere says nothing."""
    assert turns(tables) == found


def test_the_loop_of_a_gradient_takes_as_many_turns() -> None:
    """Its condition compares with what the forward loop has counted, which the graph does not show."""
    tables = counting()
    step = tables.graphs[0][0]
    step.op("gradient_tape/while_grad", "StatelessWhile", outputs="int32[]")
    index = GraphIndex(tables.worker())
    assert loop_turns.build(index, int(index.table.of_types("StatelessWhile")[0])) == Turns(32, sure=True)
