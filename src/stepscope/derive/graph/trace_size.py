"""Number of events that a trace of one step would have, from its graphs: each active node times its executions.

Nodes of a loop run in each iteration. The number of iterations is known if the loop goes through a tensor of known
length, as a recurrent layer does; its gradient takes as many. Otherwise the time of the call bounds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.graph import loop_turns
from stepscope.derive.graph.independent_loops import IDLE, WHILE

if TYPE_CHECKING:
    from collections.abc import Collection

    from stepscope.derive.graph.index import GraphIndex

NODE_EVENTS = 1.0
"""Events for each node that runs, without those of thread pools. Measured: 0.46 in a GRU's loop, 0.66 in an unrolled
model of small products; the optimizer drops nodes."""
POOL_NS = 40_000
"""Time per thread-pool event on each core during the step's call: large ops are divided between the pool's threads.
These events are written and then dropped when the trace is read. Measured: 15 to 50 a ms on two cores."""
MAX_CORES = 8
"""Cores that a step is assumed to keep busy; not measured on more. After the first capture its measured cost counts
instead."""
OP_NS = 2_000
"""Time per event of a call with an unknown number of iterations. Measured: 2.4 us in a GRU of 48 units, on two
cores."""


def per_step(index: GraphIndex, graphs: Collection[int], call_ns: float, cores: int) -> float:
    """Events of one step that runs ``graphs`` on ``cores`` cores; ``call_ns``: duration of its calls."""
    called = {
        graph for graph in graphs if (row := index.caller.get(graph)) is not None and _graph(index, row) in graphs
    }
    counted = _Counted(index)
    nodes = sum(counted.of(graph) for graph in graphs if graph not in called)
    return by_count(nodes, call_ns, cores, loops=counted.unknown)


def by_count(nodes: float, call_ns: float, cores: int, *, loops: bool) -> float:
    """The same of so many nodes; ``loops``: whether there are some with an unknown number of iterations."""
    by_time = call_ns / OP_NS if loops else 0.0
    return max(NODE_EVENTS * nodes, by_time) + call_ns * min(max(1, cores), MAX_CORES) / POOL_NS


def _graph(index: GraphIndex, row: int) -> int:
    return int(index.table.graph[row])


class _Counted:
    """Number of nodes that run in one call of a graph."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        idle = [i for i, text in enumerate(index.table.strings) if text in IDLE or text == "Identity"]
        self._busy = ~np.isin(index.table.type, idle)
        self._known: dict[int, float] = {}
        self.unknown = False
        """Whether there are loops with an unknown number of iterations."""

    def of(self, graph: int) -> float:
        """Nodes that run in a graph and in all graphs that it calls."""
        if graph not in self._known:
            self._known[graph] = 0.0  # recursion
            rows = self._index.table.rows_of(graph)
            own = float(self._busy[rows].sum())
            read = self._index.graphs.get(graph)
            numbers = {number for number, _, _ in read.calls} if read is not None else set()
            callers = self._index.table.rows_with(graph, sorted(numbers))
            self._known[graph] = own + sum(self._called(row) for row in callers)
        return self._known[graph]

    def _called(self, row: int) -> float:
        inner = sum(self.of(graph) for _, graph in self._index.called_by(row))
        if self._index.table.type_of(row) not in WHILE:
            return inner
        turns = loop_turns.of_lists(self._index, row)
        self.unknown = self.unknown or turns is None
        return inner * (turns or 1)
