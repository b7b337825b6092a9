"""The reader of graphs: slices, deaths, limits, and that it holds nothing; with TensorFlow in tests/probes."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.graphs import node_reader
from stepscope.agent.graphs.node_lines import NodeNotes
from stepscope.agent.graphs.node_reader import SETTLE_NS, SLICE_NS, GraphReader
from stepscope.agent.state import AgentState
from stepscope.collector.agent_files import graph_blocks
from stepscope.model.log.graph import GraphTable, assemble

MS = 1_000_000


class Clock:
    """Time that passes only where the test says so."""

    def __init__(self) -> None:
        self.at = 10 * SETTLE_NS

    def __call__(self) -> int:
        return self.at


class Op:
    """An op whose reading takes a while."""

    def __init__(self, graph: Graph, number: int, clock: Clock, takes: int, inputs: tuple[Any, ...] = ()) -> None:
        self.graph = graph
        self._id = number
        self.type = "Add"
        self.device = ""
        self.outputs: list[Any] = []
        self.inputs = inputs
        self.value_index = 0
        self._clock, self._takes = clock, takes

    @property
    def op(self) -> Op:
        """As a tensor's op."""
        return self

    @property
    def name(self) -> str:
        """Its name, which takes a while."""
        self._clock.at += self._takes
        return f"op{self._id}"


class Graph:
    """A graph of some ops, each the input of the next."""

    name = "g"

    def __init__(self, clock: Clock, count: int, takes: int = 0) -> None:
        self._ops: list[Op] = []
        for number in range(2, count + 2):
            self._ops.append(Op(self, number, clock, takes, tuple(self._ops[-1:])))

    def get_operations(self) -> list[Op]:
        """All ops."""
        return list(self._ops)

    def num_operations(self) -> int:
        """How many."""
        return len(self._ops)

    def grow(self, clock: Clock, count: int) -> None:
        """Add ops."""
        self._ops += Graph(clock, count)._ops


class Concrete:
    """A traced function, and its gradients as TensorFlow keeps them."""

    def __init__(self) -> None:
        self._first_order_tape_functions: dict[int, SimpleNamespace] = {}

    def differentiate(self, graph: Graph) -> None:
        """A first tape asks for the gradient."""
        made = SimpleNamespace(_backward=SimpleNamespace(graph=graph))
        self._first_order_tape_functions[len(self._first_order_tape_functions)] = made


class Setting:
    """A reader, and what it wrote."""

    def __init__(self, state: AgentState) -> None:
        self.state = state
        self.clock = Clock()
        state.now = self.clock
        self.reader = GraphReader(state, NodeNotes(self.clock, WeakIds()), WeakIds(), WeakIds())
        self.concrete: Concrete | None = Concrete()
        self._traces = 0

    def trace(self, graph: Graph, *, definition: str = "", again: int = 0, **line: Any) -> None:
        """Tell of a trace."""
        self._traces += 1
        key = definition or f"f{self._traces}.py:1"
        told = {"id": self._traces, "owner": "user", "outer": 0, "function_key": again or self._traces, "ordinal": 1}
        self.reader.traced(graph, self.concrete, {**told, "definition_key": key, **line})

    def tick(self, times: int = 1, pause: int = SETTLE_NS) -> None:
        """Let the agent's thread come by."""
        for _ in range(times):
            self.clock.at += pause
            self.reader.tick(self.clock.at)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """What was written."""
        logs = Path(self.state.lines.folder).glob("log-*.jsonl")
        lines = [json.loads(line) for log in logs for line in log.read_bytes().splitlines()]
        return [line for line in lines if line["t"] == kind]

    def table(self) -> GraphTable:
        """The nodes that were written."""
        return assemble([graph_blocks.decode(json.dumps(line).encode()) for line in self.lines("nodes")])


@pytest.fixture
def setting(opened: AgentState) -> Setting:
    """A reader whose clock the test moves."""
    return Setting(opened)


def test_slices(setting: Setting) -> None:
    """One tick reads until the slice is over, the next goes on; every node is written once, with its inputs."""
    graph = Graph(setting.clock, 10, takes=MS)
    setting.trace(graph)
    setting.tick()
    before = setting.clock.at
    assert setting.lines("graphread") == []
    setting.tick(20)
    per_tick = SLICE_NS // MS
    (read,) = setting.lines("graphread")
    assert (read["nodes"], read["state"], read["role"], read["of"]) == (10, "read", "function", 1)
    assert before + (10 // per_tick - 1) * SETTLE_NS <= read["at"]
    table = setting.table()
    assert table.node.tolist() == list(range(2, 12))
    assert [int(i) for row in range(10) for i in table.inputs_of(row)] == list(range(9))
    assert setting.state.hooks.errand is None


def test_waits_for_traces_to_end(setting: Setting) -> None:
    """Nothing is read while something is traced, nor shortly after."""
    graph = Graph(setting.clock, 2)
    setting.reader.running.add(7)
    setting.trace(graph)
    setting.tick(3)
    assert setting.lines("graphread") == []
    setting.reader.running.discard(7)
    setting.trace(other := Graph(setting.clock, 1))
    setting.tick(pause=SETTLE_NS // 2)
    assert setting.lines("graphread") == []
    setting.tick()
    assert len(setting.lines("graphread")) == 2
    del other


def test_holds_no_graph(setting: Setting) -> None:
    """Between two slices only the job holds a graph; one that it drops is counted, with what was read of it."""
    graph = Graph(setting.clock, 10, takes=MS)
    setting.trace(graph)
    setting.trace(unread := Graph(setting.clock, 5))
    setting.tick()
    gone = weakref.ref(graph)
    del graph, unread
    gc.collect()
    assert gone() is None
    setting.tick(3)
    (read,) = setting.lines("graphread")
    assert (read["state"], 0 < read["nodes"] < 10) == ("died", True)
    assert setting.lines("graphs")[-1]["died"] == 2
    assert len(setting.table()) == read["nodes"]


def test_a_trace_that_replaces_another(setting: Setting) -> None:
    """Of two traces of one call (the first made variables) the later one is read."""
    first, second = Graph(setting.clock, 3), Graph(setting.clock, 2)
    setting.trace(first, again=5)
    setting.trace(second, again=5)
    setting.tick(3)
    assert [read["nodes"] for read in setting.lines("graphread")] == [2]


def test_enough_of_one_function(setting: Setting) -> None:
    """Of a function that is traced again and again some graphs are read; the others are counted."""
    graphs = [Graph(setting.clock, 1) for _ in range(10)]
    for graph in graphs:
        setting.trace(graph, definition="f.py:1")
    setting.tick(2)
    assert len(setting.lines("graphread")) == node_reader.MAX_ALIKE
    assert setting.lines("graphs")[-1]["alike"] == 10 - node_reader.MAX_ALIKE


def test_the_users_come_first(setting: Setting) -> None:
    """What TensorFlow traces for itself waits for what the user or Keras made."""
    graphs = [Graph(setting.clock, n) for n in (1, 2, 3)]
    for graph, owner in zip(graphs, ("tensorflow", "tf.data", "user"), strict=True):
        setting.trace(graph, owner=owner)
    setting.tick(2)
    assert [read["nodes"] for read in setting.lines("graphread")] == [3, 2, 1]


def test_cap(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of a process nothing is read, and that is said."""
    monkeypatch.setattr(node_reader, "MAX_NODES", 5)
    graphs = [Graph(setting.clock, 4) for _ in range(3)]
    for graph in graphs:
        setting.trace(graph)
    setting.tick(3)
    assert [(read["nodes"], read["state"]) for read in setting.lines("graphread")] == [(4, "read"), (1, "capped")]
    assert setting.lines("graphs")[-1]["capped"] == 2


def test_a_session_grows(setting: Setting) -> None:
    """The graph of a session is read when it has stopped growing, and what is added later, later."""
    graph = Graph(setting.clock, 3)
    setting.reader.session(graph)
    setting.tick()
    graph.grow(setting.clock, 1)
    setting.tick()
    assert setting.lines("graphread") == []
    setting.tick(2)
    assert [read["nodes"] for read in setting.lines("graphread")] == [4]
    graph.grow(setting.clock, 2)
    setting.tick(3)
    assert [(read["nodes"], read["role"]) for read in setting.lines("graphread")] == [(4, "session"), (6, "session")]


def test_gradients_whenever_they_are_made(setting: Setting) -> None:
    """A gradient is read, once, whether it was there when its function was read or is made later."""
    function, early, late = (Graph(setting.clock, n) for n in (1, 2, 3))
    assert setting.concrete is not None
    setting.concrete.differentiate(early)
    setting.trace(function)
    setting.tick(3)
    setting.concrete.differentiate(late)
    setting.tick(3)
    reads = setting.lines("graphread")
    assert [(read["nodes"], read["role"]) for read in reads] == [(1, "function"), (2, "gradient"), (3, "gradient")]
    assert {read["of"] for read in reads[1:]} == {reads[0]["id"]}


def test_looks_at_a_bounded_number_of_functions(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of a process are looked at in turns: each of them, however many there are."""
    looked: list[object] = []

    def gradients(concrete: object) -> tuple[Graph, ...]:
        looked.append(concrete)
        return ()

    monkeypatch.setattr(node_reader, "_gradients", gradients)
    graphs = [Graph(setting.clock, 1) for _ in range(5)]
    functions = [Concrete() for _ in graphs]
    for graph, setting.concrete in zip(graphs, functions, strict=True):
        setting.trace(graph)
    setting.tick(2)
    looked.clear()
    monkeypatch.setattr(node_reader, "MAX_WAITING", 2)
    setting.tick()
    assert len(looked) == 2
    setting.tick(2)
    assert {id(concrete) for concrete in looked} == {id(concrete) for concrete in functions}


def test_holds_no_function(setting: Setting) -> None:
    """A function that was read lives no longer for it, and is forgotten."""
    setting.trace(graph := Graph(setting.clock, 1))
    setting.tick(2)
    gone = weakref.ref(setting.concrete)
    setting.concrete = None
    gc.collect()
    assert gone() is None
    setting.tick()
    assert not setting.reader._functions
    del graph


def test_tells_what_is_left_at_the_end(setting: Setting) -> None:
    """A job that ends before its graphs were read says how many."""
    graph = Graph(setting.clock, 3)
    setting.trace(graph)
    setting.reader.tell()
    assert setting.lines("graphs")[-1]["left"] == 1
