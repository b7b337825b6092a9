"""Builds tables of nodes op by op, as a trace would make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stepscope.model.log.events import AnyEvent
from stepscope.model.log.graph import TEXT_COLUMNS, GraphRead, GraphsRead, GraphTable, Layer, NodeColumns, assemble
from stepscope.model.session.session import Worker, WorkerInfo

FILE = "/job/train.py"


class Node(NamedTuple):
    """A node that was made."""

    graph: int
    number: int
    name: str


class _Row(NamedTuple):
    graph: int
    node: int
    line: int
    owner: int
    texts: tuple[str, ...]
    inputs: tuple[tuple[int, int], ...]


@dataclass
class Graph:
    """One graph."""

    tables: Tables
    id: int
    calls: list[tuple[int, str, int]] = field(default_factory=list)
    variables: list[tuple[int, str, str, bool]] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    empty: list[tuple[int, float]] = field(default_factory=list)
    count: int = 0

    def op(
        self,
        name: str,
        kind: str = "Mul",
        *inputs: Node | tuple[Node, int],
        outputs: str = "float32[32,64]",
        line: int = 0,
        file: str = FILE,
        function: str = "step",
        layer: int = 0,
        device: str = "",
        attributes: str = "",
        callers: str = "",
    ) -> Node:
        """Add an op; an input is a node (its first output) or (node, output)."""
        number = self.count + 2
        self.count += 1
        pairs = tuple((i.number, 0) if isinstance(i, Node) else (i[0].number, i[1]) for i in inputs)
        place = (file, function) if line else ("", "")
        texts = (name, kind, device, outputs, attributes, *place, callers)
        self.tables.rows.append(_Row(self.id, number, line, layer, texts, pairs))
        return Node(self.id, number, name)

    def variable(self, name: str, spec: str, *, trainable: bool = True, line: int = 0, layer: int = 0) -> Node:
        """A captured variable and the op that reads it; returns the read."""
        handle = self.op(f"{name}/resource", "Placeholder", outputs="resource[]", line=line, layer=layer)
        self.variables.append((handle.number, f"{name}:0", spec, trainable))
        return self.op(f"{name}/ReadVariableOp", "ReadVariableOp", handle, outputs=spec, line=line, layer=layer)

    def number(self, name: str, value: int) -> Node:
        """A constant whole number."""
        return self.op(name, "Const", outputs="int32[]", attributes=f'{{"value":[{value}]}}')

    def constant(self, name: str, spec: str, *, zeros: float = 0.0) -> Node:
        """A captured tensor; ``zeros``: its share of zeros, if it is nearly empty."""
        made = self.op(name, "Placeholder", outputs=spec)
        self.constants.append(made.number)
        if zeros:
            self.empty.append((made.number, zeros))
        return made

    def call(self, caller: Node, inner: Graph, attribute: str = "f") -> None:
        """The op ``caller`` calls ``inner``."""
        self.calls.append((caller.number, attribute, inner.id))


@dataclass
class Tables:
    """The graphs of one process."""

    rows: list[_Row] = field(default_factory=list)
    graphs: list[tuple[Graph, str, int, str]] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    more: list[AnyEvent] = field(default_factory=list)
    """Other lines of the log."""
    state: str = "read"
    """How far all graphs were read."""

    def graph(self, role: str = "function", *, of: int = 0, name: str = "step") -> Graph:
        """A new graph."""
        graph = Graph(self, len(self.graphs) + 1)
        self.graphs.append((graph, role, of, name))
        return graph

    def layer(self, name: str, cls: str = "Dense", *, line: int = 0, outer: int = 0) -> int:
        """A layer; its id."""
        identity = len(self.layers) + 1
        file = FILE if line else ""
        self.layers.append(Layer(id=identity, name=name, cls=cls, line=line, file=file, outer=outer))
        return identity

    def columns(self) -> NodeColumns:
        """All nodes as they are written."""
        rows = self.rows
        texts = {}
        for position, name in enumerate(TEXT_COLUMNS):
            known = {text: i for i, text in enumerate(dict.fromkeys(row.texts[position] for row in rows))}
            codes = np.array([known[row.texts[position]] for row in rows], np.int64)
            texts[name] = (codes, list(known))
        return NodeColumns(
            graph=_column([row.graph for row in rows]),
            node=_column([row.node for row in rows]),
            line=_column([row.line for row in rows]),
            owner=_column([row.owner for row in rows]),
            texts=texts,
            fan_in=_column([len(row.inputs) for row in rows]),
            producers=_column([number for row in rows for number, _ in row.inputs]),
            slots=_column([slot for row in rows for _, slot in row.inputs]),
        )

    def table(self) -> GraphTable:
        """All nodes."""
        return assemble([self.columns()])

    def events(self) -> list[AnyEvent]:
        """The lines about them."""
        reads: list[AnyEvent] = [
            GraphRead(
                id=graph.id,
                role=role,
                of=of,
                name=name,
                nodes=graph.count,
                state=self.state,
                calls=tuple(graph.calls),
                variables=tuple(graph.variables),
                constants=tuple(graph.constants),
                empty=tuple(graph.empty),
            )
            for graph, role, of, name in self.graphs
        ]
        return [*self.more, *self.layers, *reads, GraphsRead(read=len(reads))]

    def worker(self) -> Worker:
        """A process that has made nothing else."""
        from stepscope.tables.records import RecordTable

        info = WorkerInfo(key="1-1", pid=1)
        return Worker(info=info, records=RecordTable.empty(), events=self.events(), graphs=self.table())


def _column(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int64)
