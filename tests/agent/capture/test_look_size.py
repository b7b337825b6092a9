"""How many steps the first look takes."""

from __future__ import annotations

import pytest

from stepscope.agent.capture import look_size
from stepscope.agent.core.graph_sizes import GraphSizes, Size
from stepscope.wire.kinds import Kind

MS = 1_000_000
BOUND_NS = 100 * MS


@pytest.mark.parametrize(
    ("each", "step_ms", "steps"),
    [(440, 3, 10), (3_000, 80, 8), (3_000, 400, 2), (20_000, 80, 1), (60_000, 80, 1), (80_000, 80, 0)],
)
def test_the_bound_covers_the_steps(each: float, step_ms: int, steps: int) -> None:
    """Ten of a small model, fewer of a large one and of long ones; one that costs three times the bound; else none."""
    found = look_size.steps(BOUND_NS, each, step_ms * MS)
    assert found == steps
    if found > 1:
        assert look_size.cost_ns(found, each, step_ms * MS) <= BOUND_NS


def test_the_events_of_a_step_by_what_is_known() -> None:
    """Nodes where a graph has no loop, the time of the call where it has, the time of the step without a graph."""
    graph = look_size.events(Kind.FUNCTION, Size(1_000), 10 * MS, 6 * MS, 1)
    assert graph == 1_000 + 6 * MS / look_size.POOL_NS
    loops = look_size.events(Kind.FUNCTION, Size(1_000, loops=True), 10 * MS, 6 * MS, 1)
    assert loops == 6 * MS / look_size.OP_NS + 6 * MS / look_size.POOL_NS
    assert look_size.events(Kind.APPLY, Size(), 10 * MS, MS, 1) == 10 * MS / look_size.EAGER_NS
    run = look_size.events(Kind.SESSION_RUN, Size(300), 10 * MS, 6 * MS, 1)
    assert run == look_size.RUN_EVENTS + 300


class Graph:
    """Looks like a graph of TensorFlow's."""

    def __init__(self, nodes: int, *functions: str) -> None:
        self.version = nodes
        self._functions = dict.fromkeys(functions)

    def num_operations(self) -> int:
        """Of a session's graph."""
        return self.version


def test_of_the_traces_of_one_function_the_newest_counts() -> None:
    """Variables are made in a trace of their own; loops show by the names of the functions that a graph calls."""
    sizes, first, second, inner = GraphSizes(), Graph(100), Graph(200), Graph(50, "while_body_3")
    sizes.add(1, first, "step", 0)
    sizes.wanted = True
    sizes.add(1, first, "step", 0)
    sizes.add(2, second, "step", 3)
    sizes.add(3, inner, "inner", 0)
    assert (sizes.of([1, 2]).nodes, sizes.of([1, 2]).loops, sizes.of([1, 2]).updates) == (120, False, True)
    assert (sizes.of([1, 2, 3]).nodes, sizes.of([1, 2, 3]).loops) == (150, True)
    assert (sizes.trains([1, 3]), sizes.trains([2])) == (False, True)
    sizes.add_session(second)
    assert sizes.of_sessions().nodes == 200
    sizes.forget()
    assert (sizes.of([1, 2]).nodes, sizes.of_sessions().nodes) == (0, 0)
