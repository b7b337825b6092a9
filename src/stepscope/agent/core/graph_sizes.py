"""Sizes of traced graphs: what the size of an op trace depends on.

Kept until the first look has been decided (``agent.capture.first_look``), and only where one is armed.
"""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Graph = Foreign

MAX_GRAPHS = 4_096
BUSY_RATIO = 0.6
"""Share of a graph's nodes that make an event. Measured: 0.46 in a GRU's loop, 0.66 in an unrolled model of small
products (``derive.graph.trace_size``)."""
LOOP_BODY = "_body_"
"""Part of the name of the function that TensorFlow makes of a loop's body."""


class Size:
    """What is known of the graphs that one call runs."""

    __slots__ = ("loops", "nodes", "updates")

    def __init__(self, nodes: int = 0, *, loops: bool = False, updates: bool = False) -> None:
        self.nodes = nodes
        """Number of nodes that run once in a call; 0: unknown."""
        self.loops = loops
        """Whether there are loops, whose nodes run an unknown number of times."""
        self.updates = updates
        """Whether they change variables: the call trains."""


class GraphSizes:
    """The graphs of this process. Any thread adds, the agent's reads."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether sizes are kept."""
        self.chosen: frozenset[int] = frozenset()
        """Ids of the traces whose graphs the first look shows: their nodes are read first, and soon."""
        self._traced: dict[int, tuple[weakref.ref[Graph], object, int]] = {}
        self._sessions: list[weakref.ref[Graph]] = []

    def add(self, trace: int, graph: Graph, key: object, updates: int) -> None:
        """A function was traced. ``trace``: id of the trace; ``key``: the same for traces of one Python function."""
        if self.wanted and len(self._traced) < MAX_GRAPHS:
            self._traced[trace] = (weakref.ref(graph), key, updates)

    def add_session(self, graph: Graph) -> None:
        """A session of ``graph`` was made."""
        if self.wanted and len(self._sessions) < MAX_GRAPHS:
            self._sessions.append(weakref.ref(graph))

    def forget(self) -> None:
        """Keep no sizes any more."""
        self.wanted = False
        self._traced.clear()
        self._sessions.clear()

    def trains(self, traces: Iterable[int]) -> bool:
        """Whether one of these traces changes variables."""
        return any(self._traced[trace][2] > 0 for trace in traces if trace in self._traced)

    def of(self, traces: Iterable[int]) -> Size:
        """What is known of these traces together; of several traces of one Python function, the newest counts."""
        newest = {known[1]: known[0]() for known in map(self._traced.get, sorted(traces)) if known is not None}
        graphs = [graph for graph in newest.values() if graph is not None]
        nodes = int(BUSY_RATIO * sum(int(getattr(graph, "version", 0)) for graph in graphs))
        return Size(nodes, loops=any(map(_loops, graphs)), updates=self.trains(traces))

    def of_sessions(self) -> Size:
        """Size of the largest graph of a session: the most that a run of it can run."""
        graphs = [graph for graph in (reference() for reference in self._sessions) if graph is not None]
        return Size(max((int(graph.num_operations()) for graph in graphs), default=0))


def _loops(graph: Optional[Graph]) -> bool:
    """Whether a graph has a loop."""
    return any(LOOP_BODY in str(name) for name in getattr(graph, "_functions", ()))
