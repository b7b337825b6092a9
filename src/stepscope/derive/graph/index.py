"""Finds the graph node of an op in a trace.

A trace names an op by the path on which TensorFlow inlined functions into one graph before running it: the calling
node's name, for a loop or branch ``body/_12`` or ``then/_3``, the node's name in the called graph, and so on from each
call to the next. So a name is followed from the graphs that Python runs (functions, their gradients, sessions) through
their calls. A node that the optimizer made from several carries the name of one of them with a suffix, or something
after a last "/": the name is shortened there until a node matches.

Source: tensorflow/core/common_runtime/inline_function_utils.cc and lower_while_op.cc for the names; measured on traces
of TensorFlow 2.15 and 2.21.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.model.log.events import Traced
from stepscope.model.log.graph import GraphRead, Layer, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.log.graph import GraphTable
    from stepscope.model.session.session import Worker

NOT_FOUND = -1
CALLING = frozenset(
    {
        "PartitionedCall",
        "StatefulPartitionedCall",
        "While",
        "StatelessWhile",
        "If",
        "StatelessIf",
        "Case",
        "StatelessCase",
    }
)
"""Types of nodes that call graphs."""
PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"})
"""Types of products of matrices."""
_EAGER = ("StatefulPartitionedCall/", "PartitionedCall/")
"""Prefixes that wrap eagerly run ops, in names only."""
_MARKER = re.compile(r"^(?:body|cond|then|else|branch\d+)/_\d+/")
_OPTIMISED = re.compile(r"(?:^|/)(?:ArithmeticOptimizer|ConstantFolding|LayoutOptimizer)/(?:[A-Z]\w*_)?(?=.)")
_SUFFIX = re.compile(r"-(?:\d+-|folded|reduction|bcast|matmul_grad)[\w-]*$|/_\d+(?:__cf__\d+)?$")
_COPY = re.compile(r"_\d+$")
"""Added to the name of a node in the copy of a function that is differentiated: ``while_11`` is its ``while``."""
_ADDED = "AddN"
"""Type that adds the gradients of one tensor up, from each node that takes it."""
_GRADIENT = re.compile(r"(?:^|/)(?:gradient_tape|gradients)/")
_GRAD_OF = re.compile(r"^(.*?)_grad(?:/|$)")


class GraphIndex:
    """Nodes by name, of the graphs of one process. ``node_of`` and ``forward_of`` cache their answers."""

    def __init__(self, worker: Worker) -> None:
        self.table: GraphTable = worker.graphs
        self.graphs: dict[int, GraphRead] = {g.id: g for g in worker.all(GraphRead)}
        self.layers: dict[int, Layer] = {layer.id: layer for layer in worker.all(Layer)}
        self._rows: dict[int, dict[str, int]] = defaultdict(dict)
        """Graph -> name -> row."""
        for row, (graph, name) in enumerate(zip(self.table.graph.tolist(), self.table.name.tolist(), strict=True)):
            self._rows[graph][self.table.strings[name]] = row
        self._calls: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        """Graph -> name of a calling node -> graphs called."""
        self.caller: dict[int, int] = {}
        """Graph -> row of the first node that calls it."""
        for graph in self.graphs.values():
            self._note_calls(graph)
        self.roots = self._order()
        owners = {t.id: t.owner for t in worker.all(Traced)}
        self._definitions = {t.id: t.definition_key for t in worker.all(Traced)}
        self._of_data = {g.id for g in self.graphs.values() if g.role == "function" and owners.get(g.of) == "tf.data"}
        self._found: dict[tuple[str, str, bool], int] = {}
        self._forward: dict[int, int] = {}
        self._scopes: dict[int, dict[str, int]] = {}
        self._directly: dict[int, dict[str, list[int]]] = {}

    def _note_calls(self, graph: GraphRead) -> None:
        rows = self.table.rows_of(graph.id)
        numbers = {int(node): rows.start + i for i, node in enumerate(self.table.node[rows].tolist())}
        for node, _, inner in graph.calls:
            row = numbers.get(node)
            if row is not None:
                self._calls[graph.id][self.table.name_of(row)].append(inner)
                self.caller.setdefault(inner, row)

    def _order(self) -> list[int]:
        """Graphs in search order: those that Python runs first, large ones before small ones."""
        return sorted(self._rows, key=lambda g: (g in self.caller, -len(self._rows[g])))

    def node_of(self, name: str, op_type: str = "", *, data: bool = False) -> int:
        """Row of the node of the trace's op ``name``, ``NOT_FOUND`` if there is none.

        If several graphs have a node of that name, a node of a function called by tf.data is preferred, or avoided, as
        ``data`` says; then one of ``op_type``; then one of a graph that Python runs.
        """
        key = (name, op_type, data)
        if key not in self._found:
            self._found[key] = self._look(name, op_type, data=data)
        return self._found[key]

    def _look(self, name: str, op_type: str, *, data: bool) -> int:
        for candidate in _spellings(name):
            found = [
                ((graph in self._of_data) != data, self.table.type_of(row) != op_type, order, row)
                for order, graph in enumerate(self.roots)
                if (row := self._resolve(graph, candidate)) != NOT_FOUND
            ]
            if found:
                return min(found)[3]
        return NOT_FOUND

    def called_by(self, row: int) -> tuple[tuple[str, int], ...]:
        """(attribute, graph) of the graphs that a node calls, if they were read."""
        table = self.table
        graph = self.graphs.get(int(table.graph[row]))
        number = int(table.node[row])
        calls = graph.calls if graph is not None else ()
        return tuple((attribute, inner) for node, attribute, inner in calls if node == number and inner in self._rows)

    def inside(self, graph: int) -> Iterator[int]:
        """Rows of a graph and of all graphs that it calls."""
        seen = {graph}
        todo = [graph]
        while todo:
            rows = self.table.rows_of(todo.pop())
            for row in range(rows.start, rows.stop):
                yield row
                inner = {g for _, g in self.called_by(row)} - seen if self.table.type_of(row) in CALLING else set()
                seen |= inner
                todo += inner

    def of_data(self, graph: int) -> bool:
        """Whether tf.data calls a graph, so that its ops work for the input."""
        caller = self.caller.get(graph, NOT_FOUND)
        seen = {graph}
        while caller != NOT_FOUND and (above := int(self.table.graph[caller])) not in seen:
            graph = above
            seen.add(graph)
            caller = self.caller.get(graph, NOT_FOUND)
        return graph in self._of_data

    def definition_of(self, graph: int) -> str:
        """Place file:line of the Python function whose trace a graph is; "" for another graph."""
        read = self.graphs.get(graph)
        return self._definitions.get(read.of, "") if read is not None and read.role == "function" else ""

    def maker_of(self, row: int) -> tuple[tuple[str, str, int] | None, Layer | None]:
        """(file, function, line) and layer that made a node; else those of the node that calls its graph."""
        table = self.table
        place, layer = None, None
        for _ in range(len(self.graphs) + 1):
            if place is None and table.line[row]:
                place = (table.text(table.file, row), table.text(table.function, row), int(table.line[row]))
            layer = layer or self.layers.get(int(table.owner[row]))
            caller = self.caller.get(int(table.graph[row]), NOT_FOUND)
            if caller == NOT_FOUND:
                break
            row = caller
        return place, layer

    def path_of(self, row: int) -> tuple[tuple[str, str, int], ...]:
        """(file, function, line) of the user code that made a node, the innermost line first, then that of the node
        that calls its graph, and so on.
        """
        found: list[tuple[str, str, int]] = []
        for _ in range(len(self.graphs) + 1):
            found += path_of(self.table, row)
            row = self.caller.get(int(self.table.graph[row]), NOT_FOUND)
            if row == NOT_FOUND:
                break
        return tuple(found)

    def _resolve(self, graph: int, name: str) -> int:
        """The node at that path, starting from ``graph``."""
        row = self._rows[graph].get(name)
        if row is not None:
            return row
        calls = self._calls.get(graph)
        if not calls:
            return NOT_FOUND
        at = name.find("/")
        while at > 0:
            for inner in calls.get(name[:at], ()) or calls.get(_COPY.sub("", name[:at]), ()):
                found = self._resolve(inner, _MARKER.sub("", name[at + 1 :]))
                if found != NOT_FOUND:
                    return found
            at = name.find("/", at + 1)
        return NOT_FOUND

    def is_gradient(self, row: int) -> bool:
        """Whether a node computes a gradient, by its name."""
        return _GRADIENT.search(self.table.name_of(row)) is not None

    def forward_of(self, row: int) -> int:
        """Row of the node whose gradient a node computes, or of another node made by the same line and layer.

        ``NOT_FOUND`` if there is none.
        """
        if row not in self._forward:
            self._forward[row] = self._look_forward(row)
        return self._forward[row]

    def _look_forward(self, row: int) -> int:
        found = self._look_forward_by_name(row)
        caller = self.caller.get(int(self.table.graph[row]), NOT_FOUND)
        if found == NOT_FOUND and caller != NOT_FOUND and self.is_gradient(caller):
            return self.forward_of(caller)
        if found != NOT_FOUND and self.table.type_of(row) == _ADDED and self.table.type_of(found) in CALLING:
            return self._of_summand(row, found)
        return found

    def _of_summand(self, row: int, call: int) -> int:
        """The forward node of the first summand that has one: a sum's own name says only which call it is in."""
        each = (self.forward_of(int(i)) for i in self.table.inputs_of(row) if i >= 0 and self.is_gradient(int(i)))
        return next((one for one in each if one not in {NOT_FOUND, call}), call)

    def _look_forward_by_name(self, row: int) -> int:
        name = self.table.name_of(row)
        parts = _GRADIENT.split(name)
        if len(parts) == 1:
            return NOT_FOUND
        graphs = self._around(int(self.table.graph[row]))
        for part in reversed(parts[1:]):
            match = _GRAD_OF.match(part)
            for candidate in [*([match[1]] if match else []), *_cut(part)]:
                for graph in graphs:
                    found = self._rows[graph].get(candidate, NOT_FOUND)
                    if found not in (NOT_FOUND, row):
                        return found
            found = self._by_flow(row, part.rpartition("/")[0])
            if found != NOT_FOUND:
                return found
            for scope in _cut(part.rpartition("/")[0]):
                for graph in graphs:
                    found = self._scopes_of(graph).get(scope, NOT_FOUND)
                    if found != NOT_FOUND:
                        return found
        return NOT_FOUND

    def _by_flow(self, row: int, scope: str) -> int:
        """The forward node in ``scope`` whose output a gradient's node takes, or with which it shares an input."""
        table, graph = self.table, int(self.table.graph[row])
        taken = {int(i) for i in table.inputs_of(row) if i >= 0 and not self.is_gradient(int(i))}
        inside = [
            r for r in self._in_scope(graph, scope) if r in taken or not taken.isdisjoint(table.inputs_of(r).tolist())
        ]
        own = table.type_of(row)
        alike = [r for r in inside if own.startswith(table.type_of(r))]
        for found in (alike, inside):
            if found and len({self._maker(r) for r in found}) == 1:
                return found[0]
        return NOT_FOUND

    def _in_scope(self, graph: int, scope: str) -> list[int]:
        """Forward nodes whose name is ``scope``, "/", and one more part."""
        known = self._directly.get(graph)
        if known is None:
            known = self._directly[graph] = defaultdict(list)
            for name, row in self._rows[graph].items():
                if _GRADIENT.search(name) is None:
                    known[name.rpartition("/")[0]].append(row)
        return known.get(scope, [])

    def _scopes_of(self, graph: int) -> dict[str, int]:
        """Scope -> a node in it, for scopes whose forward nodes all have one line and one layer."""
        known = self._scopes.get(graph)
        if known is None:
            known = self._scopes[graph] = {}
            for name, row in self._rows[graph].items():
                if _GRADIENT.search(name) is not None:
                    continue
                scope = name.rpartition("/")[0]
                while scope:
                    other = known.setdefault(scope, row)
                    if other != NOT_FOUND and self._maker(other) != self._maker(row):
                        known[scope] = NOT_FOUND
                    scope = scope.rpartition("/")[0]
        return known

    def _maker(self, row: int) -> tuple[int, int, int]:
        return int(self.table.file[row]), int(self.table.line[row]), int(self.table.owner[row])

    def _around(self, graph: int) -> list[int]:
        """A graph, its callers, the graph whose gradient it is, then the others."""
        near = [graph]
        while near[-1] in self.caller and len(near) < len(self.graphs):
            near.append(int(self.table.graph[self.caller[near[-1]]]))
        for one in list(near):
            read = self.graphs.get(one)
            if read is not None and read.role == "gradient":
                near.append(read.of)
        return list(dict.fromkeys([*near, *self.roots]))


def _spellings(name: str) -> Iterator[str]:
    """Possible spellings of the name in a graph, the likeliest first."""
    seen = set()
    for base in (name, _strip(name)):
        for spelling in (base, _OPTIMISED.sub("/", base).lstrip("/"), _SUFFIX.sub("", base)):
            if spelling and spelling not in seen:
                seen.add(spelling)
                yield spelling
    for base in (name, _strip(name), _OPTIMISED.sub("/", _SUFFIX.sub("", name)).lstrip("/")):
        for spelling in _cut(base):
            if spelling not in seen:
                seen.add(spelling)
                yield spelling


def _strip(name: str) -> str:
    while name.startswith(_EAGER):
        name = name.partition("/")[2]
    return name


def _cut(name: str) -> Iterator[str]:
    """The name, then the name without its last part, and so on."""
    while name:
        yield name
        name = name.rpartition("/")[0]
