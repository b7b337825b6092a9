"""Reads the nodes of graphs that matter: late, in slices of at most 2 ms, on the agent's thread.

A graph waits until nothing has been traced for a second, and is then read op by op. Between two slices only a weak
reference to it is held; a graph that dies meanwhile is counted. The graphs that it calls (loops, branches, functions)
are read after it, then the gradients that Python makes of it, however late. Every graph ends in a ``graphread`` line;
``graphs`` lines say how many were not read, and why.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections import deque

from stepscope.agent.graphs.node_rows import Rows, called, constants, empty, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Graph = Foreign
    Op = Foreign
    Concrete = Foreign

    from stepscope.agent.core.weak_ids import WeakIds
    from stepscope.agent.graphs.node_lines import GraphNotes, NodeNotes
    from stepscope.agent.state import AgentState

SLICE_NS = 2_000_000
"""Longest slice; the GIL is held during it. Source: decision 0004, level 0."""
PAUSE_NS = 45_000_000
"""Pause between two slices while there is something to read: reading takes 4 % of the time."""
SETTLE_NS = 1_000_000_000
"""Time without a trace before reading starts: first calls trace one function after another."""
MAX_SETTLE_NS = 10_000_000_000
"""Longest wait for tracing to settle: a program that traces without end is read all the same."""
MAX_NODES = 60_000
"""Nodes read in one process: a log of some 6 MB. A training step of a large model has 10,000."""
VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS")
"""Variables of the environment that set TensorFlow's threads and kernels, and that a program may change."""
MAX_VALUE = 100
"""Characters of such a variable that are kept."""
MAX_WAITING = 512
MAX_ALIKE = 3
"""Graphs read of one Python function: its later traces differ only in shapes."""
CHOSEN = -2
"""Rank of the graphs that a first look shows, and of those that they call: they are read before tracing settles,
because a program that makes one model after another may drop them first."""
RANKS = {"user": 0, "keras": 0, "tf.data": 1, "tensorflow": 2}
"""Reading order by the owner of a function, lowest first."""


class PendingGraph:
    """A graph that is waiting or being read."""

    __slots__ = (
        "calls",
        "concrete",
        "cpu_ns",
        "graph",
        "identity",
        "key",
        "nodes",
        "of",
        "rank",
        "role",
        "rows",
        "size",
    )

    def __init__(self, graph: Graph, identity: int, role: str, *, of: int = 0, rank: int = 0) -> None:
        self.graph = weakref.ref(graph)
        self.concrete: Optional[weakref.ref[Concrete]] = None
        """Weak reference to the ConcreteFunction, which knows its gradients."""
        self.identity = identity
        self.role = role
        self.of = of
        """Id of the trace that made it or, for a gradient, of the graph that was differentiated."""
        self.rank = rank
        self.key: object = None
        """Key shared by traces of which a later one makes the earlier ones useless."""
        self.nodes = 0
        """Number of nodes read so far."""
        self.size = -1
        """Number of ops of a session's graph at the last look: such a graph may grow."""
        self.cpu_ns = 0
        self.calls: list[tuple[int, str, int]] = []
        """(number of the calling node, attribute, id of the graph) of each call."""
        self.rows: Optional[Rows] = None


class GraphReader:
    """Reads the graphs of one process. Any thread may call ``traced`` and ``session``; the agent's calls ``tick``."""

    def __init__(self, state: AgentState, lines: NodeNotes, made: WeakIds, seen: WeakIds) -> None:
        """``made``: notes by graph, see ``node_lines``; ``seen``: ids of graphs by graph, empty."""
        self._state = state
        self._lines = lines
        self._made = made
        self._seen = seen
        self._waiting: deque[PendingGraph] = deque()
        self._sessions: list[PendingGraph] = []
        self._functions: deque[tuple[weakref.ref[Concrete], int]] = deque()
        """The functions that were read, and the ids of their graphs: Python may differentiate them at any time."""
        self._looked = 0
        self._settle_ns = int(state.config.get("graph_settle_ns", SETTLE_NS))
        self._current: Optional[PendingGraph] = None
        self._alike: dict[str, int] = {}
        self._skipped: dict[int, PendingGraph] = {}
        """Graphs that are like others, by id: they are read if a first look shows them."""
        self._read = 0
        self.running: set[int] = set()
        """Ids of the traces that are running."""
        self._last_trace = 0
        self._last_slice = 0
        self._first_wait = 0
        self.errand = state.guard("graph_nodes.read")(self.tick)
        """``tick``, which is given up if it keeps failing."""
        self._counts = {"read": 0, "died": 0, "alike": 0, "capped": 0}
        self._told: tuple[int, ...] = ()

    def traced(self, graph: Graph, concrete: Concrete, line: dict[str, Foreign]) -> None:
        """Queue the graph of a traced function; ``line``: the known fields of the trace."""
        self._last_trace = self._state.now()
        self._state.captures.sizes.add(line["id"], graph, line["definition_key"], line.get("updates", 0))
        if len(self._waiting) >= MAX_WAITING:
            self._counts["capped"] += 1
            return
        wanted = PendingGraph(graph, self._known(graph), "function", of=line["id"], rank=RANKS.get(line["owner"], 2))
        wanted.concrete = weakref.ref(concrete)
        if line["outer"]:
            wanted.rank += 1  # most are read as the callee of their outer trace
        wanted.key = (line["function_key"], line["ordinal"])
        for other in list(self._waiting):
            if other.key == wanted.key:
                self._waiting.remove(other)
        alike = self._alike.get(line["definition_key"], 0)
        if alike >= MAX_ALIKE:
            self._counts["alike"] += 1
            if len(self._skipped) < MAX_WAITING:
                self._skipped[wanted.identity] = wanted
            return
        self._alike[line["definition_key"]] = alike + 1
        self._first_wait = self._first_wait or self._last_trace
        self._waiting.append(wanted)

    def session(self, graph: Graph) -> None:
        """Watch the graph of a session that was made."""
        if self._seen.get(graph) is None and len(self._sessions) < MAX_WAITING:
            self._sessions.append(PendingGraph(graph, self._known(graph), "session"))
            self._state.captures.sizes.add_session(graph)

    def _known(self, graph: Graph) -> int:
        identity: Optional[int] = self._seen.get(graph)
        if identity is None:
            identity = self._state.new_id("graph table")
            self._seen.set(graph, identity)
        return identity

    def tick(self, now_ns: int) -> None:
        """Read for at most ``SLICE_NS`` if there is something to read and nothing is being traced."""
        if now_ns - self._looked >= self._settle_ns:
            self._looked = now_ns
            self._look_at_sessions()
            self._look_at_functions()
        busy = self._current is not None or bool(self._waiting)
        self._state.hooks.errand = self.errand if busy else None
        if not busy or self.running or now_ns - self._last_slice < PAUSE_NS:
            return
        chosen = self._choose()
        if self._state.captures.sizes.chosen and self._state.captures.recording:
            return
        settled = now_ns - self._last_trace >= self._settle_ns or now_ns - self._first_wait >= MAX_SETTLE_NS
        if not (chosen or settled):
            return
        began = time.thread_time_ns()
        deadline = self._state.now() + SLICE_NS
        while self._state.now() < deadline and (self._current is not None or self._take()):
            self._slice(deadline)
        self._last_slice = self._state.now()
        self._state.hooks.apart_ns += time.thread_time_ns() - began
        if self._current is None and not self._waiting:
            self._first_wait = 0
            self.tell()

    def hurry(self, most_ns: int) -> None:
        """Read what waits at once, for at most so long, on the agent's thread: the process may end any moment."""
        if self.running or (self._current is None and not self._waiting):
            return
        deadline = self._state.now() + most_ns
        while self._state.now() < deadline and (self._current is not None or self._take()):
            self._slice(deadline)
        if self._current is not None and self._current.rows is not None:
            self._current.rows.write()

    def _choose(self) -> bool:
        """Rank the graphs that a first look shows; returns whether one of them is still to be read."""
        chosen = self._state.captures.sizes.chosen
        if not chosen:
            return False
        for wanted in [wanted for wanted in self._skipped.values() if wanted.of in chosen]:
            self._waiting.append(self._skipped.pop(wanted.identity))
        for wanted in self._waiting:
            if wanted.of in chosen and wanted.role == "function":
                wanted.rank = CHOSEN
        left = [*self._waiting, *([self._current] if self._current is not None else [])]
        return any(wanted.rank == CHOSEN for wanted in left)

    def _look_at_sessions(self) -> None:
        """Queue the graphs of sessions that have grown since they were read and have stopped growing."""
        self._sessions = [wanted for wanted in self._sessions if wanted.graph() is not None]
        for wanted in self._sessions:
            graph = wanted.graph()
            size = int(graph.num_operations()) if graph is not None else 0
            if size == wanted.size and size > wanted.nodes and wanted not in self._waiting:
                self._waiting.append(wanted)
            wanted.size = size

    def _look_at_functions(self) -> None:
        """Queue the gradients that were made of functions since the last look, of so many functions at a time."""
        for _ in range(min(len(self._functions), MAX_WAITING)):
            reference, identity = self._functions.popleft()
            concrete = reference()
            if concrete is None:
                continue
            self._functions.append((reference, identity))
            self._want_gradients(concrete, identity)

    def _want_gradients(self, concrete: Optional[Concrete], identity: int) -> None:
        for inner in _gradients(concrete):
            if self._seen.get(inner) is None:
                self._first_wait = self._first_wait or self._state.now()
                self._waiting.append(PendingGraph(inner, self._known(inner), "gradient", of=identity))

    def _take(self) -> bool:
        """Make the next graph to read ``_current``; returns whether there is one."""
        while self._waiting:
            wanted = min(self._waiting, key=_rank)
            self._waiting.remove(wanted)
            if wanted.graph() is None:
                self._counts["died"] += 1
                continue
            if self._read >= MAX_NODES:
                self._counts["capped"] += 1
                continue
            self._current = wanted
            return True
        return False

    def _slice(self, deadline: int) -> None:
        """Continue with the current graph until ``deadline``."""
        wanted = self._current
        if wanted is None:
            return
        began = time.thread_time_ns()
        graph = wanted.graph()
        ops = graph.get_operations() if graph is not None else []
        if len(ops) < wanted.nodes or not ops:
            wanted.cpu_ns += time.thread_time_ns() - began
            self._end(wanted, None, "died")
            return
        if wanted.rows is None:
            wanted.rows = Rows(self._state, wanted.identity, self._lines, self._made.get(graph))
        state = ""
        for op in ops[wanted.nodes :]:
            wanted.rows.add(op)
            wanted.nodes += 1
            self._read += 1
            self._follow(wanted, graph, op)
            if self._read >= MAX_NODES:
                state = "capped"
            if state or self._state.now() >= deadline:
                break
        if wanted.nodes == len(ops):
            state = "read"
        wanted.cpu_ns += time.thread_time_ns() - began
        if state:
            self._end(wanted, graph, state)

    def _follow(self, wanted: PendingGraph, graph: Graph, op: Op) -> None:
        for attribute, inner in called(graph, op):
            new = self._seen.get(inner) is None
            identity = self._known(inner)
            new = new or (wanted.rank == CHOSEN and self._skipped.pop(identity, None) is not None)
            wanted.calls.append((op._id, attribute, identity))
            if new:
                self._waiting.append(PendingGraph(inner, identity, attribute, rank=min(-1, wanted.rank)))
            else:
                for other in self._waiting:
                    if other.identity == identity:
                        other.rank = min(-1, wanted.rank)

    def _end(self, wanted: PendingGraph, graph: Graph, state: str) -> None:
        self._current = None
        self._counts[state] += 1
        if wanted.rows is not None:
            wanted.rows.write()
            wanted.rows = None
        made: Optional[GraphNotes] = self._made.get(graph) if graph is not None else None
        line: dict[str, object] = {"t": "graphread", "at": self._state.now(), "id": wanted.identity}
        line.update(role=wanted.role, of=wanted.of, nodes=wanted.nodes, state=state, calls=wanted.calls)
        line.update(cpu_ns=wanted.cpu_ns, noted_ns=made.spent_ns if made is not None else 0)
        if graph is not None:
            line.update(name=str(getattr(graph, "name", "")), variables=variables(graph))
            line.update(constants=constants(graph), empty=empty(graph))
        self._state.log(line)
        if wanted.concrete is not None:
            self._functions.append((wanted.concrete, wanted.identity))
            self._want_gradients(wanted.concrete(), wanted.identity)

    def finish(self) -> None:
        """At the end: read on for as long as the job may still work for its captures, then log how much was read."""
        until = self._state.captures.leave_ns
        if self._state.now() < until:
            self._look_at_sessions()
            self._look_at_sessions()  # a session's graph is read if two looks find the same size
            self._look_at_functions()
        while self._state.now() < until and (self._current is not None or self._take()):
            self._slice(until)
        self.tell()

    def tell(self) -> None:
        """Log how many graphs were read and how many not, if that has changed."""
        left = len(self._waiting) + (self._current is not None)
        told = (*self._counts.values(), left)
        if told != self._told and any(told):
            self._told = told
            self._state.log({"t": "graphs", "at": self._state.now(), **self._counts, **_settings(), "left": left})


def _settings() -> dict[str, object]:
    """TensorFlow's numbers of threads, and the variables that set them, as the program left them."""
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    return {
        "intra_op": int(getattr(context, "_intra_op_parallelism_threads", None) or 0),
        "inter_op": int(getattr(context, "_inter_op_parallelism_threads", None) or 0),
        "environment": {name: os.environ[name][:MAX_VALUE] for name in VARIABLES if name in os.environ},
    }


def _rank(wanted: PendingGraph) -> int:
    return wanted.rank


def _gradients(concrete: Concrete) -> Iterator[Graph]:
    """Gradient graphs of a function that Python differentiated, by a tape that is not itself traced."""
    for made in list(getattr(concrete, "_first_order_tape_functions", {}).values()):
        backward = getattr(made, "_backward", None)
        graph = getattr(backward, "graph", None)
        if graph is not None:
            yield graph
