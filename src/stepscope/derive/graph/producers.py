"""Which ops make what an op takes: through nodes that do not run, and from graph to graph where one calls the other.

The k-th argument of a called graph is the k-th input of the node that calls it, and its k-th result that node's k-th
output; the results of a loop's body are arguments of its next turn. Where numbers or types do not agree, nothing is
followed: an optimizer may have changed a graph's arguments.

Source: tensorflow/python/framework/func_graph.py, ops/while_v2.py and ops/cond_v2.py for arguments and results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.graph.independent_loops import ARGUMENT, RESULT
from stepscope.derive.graph.index import CALLING, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from stepscope.derive.graph.index import GraphIndex

EACH = "IdentityN"
"""Type whose k-th output is its k-th input: the gradients of all variables pass one of an optimizer."""
STEPPED = frozenset({"body", "cond"})
"""Attributes by which a loop calls its graphs."""
WHOLE = frozenset({"f", *STEPPED})
"""Attributes of graphs that take all inputs of their caller; a branch does not take the first, the condition."""
PASSED = 64
"""Most nodes in a row that are passed through."""
Output = tuple[int, int]
"""Row of a node, and which of its outputs."""


class Producers:
    """Makers of tensors in the graphs of one process."""

    def __init__(self, index: GraphIndex, *, turns: bool) -> None:
        """``turns``: whether the results of a loop's turn are followed to the next."""
        self._index = index
        self._turns = turns
        self._arguments: dict[int, list[int]] = {}
        self._results: dict[int, list[int]] = {}
        self._attributes: dict[int, str] = {}
        for row in set(index.caller.values()):
            self._attributes |= {graph: attribute for attribute, graph in index.called_by(row)}

    def makers(self, node: int, ran: Container[int]) -> dict[int, list[int]]:
        """Nodes that ran and whose results a node takes -> which of their outputs."""
        found: dict[int, list[int]] = {}
        seen = set[Output]()
        near = self._inputs(node)
        for _ in range(PASSED):
            fresh = [output for output in dict.fromkeys(near) if output[0] >= 0 and output not in seen]
            if not fresh:
                break
            seen.update(fresh)
            near = []
            for row, slot in fresh:
                crossed = self._across(row, slot)
                if crossed is not None:
                    near += crossed
                elif row in ran:
                    found.setdefault(row, []).append(slot)
                else:
                    given = self._inputs(row)
                    near += given[slot : slot + 1] if self._index.table.type_of(row) == EACH else given
        return found

    def _inputs(self, row: int) -> list[Output]:
        table = self._index.table
        return list(zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True))

    def _across(self, row: int, slot: int) -> list[Output] | None:
        """What an output is in the graph that calls this one, or in one that its node calls; None if it is neither."""
        kind = self._index.table.type_of(row)
        if kind == ARGUMENT:
            return self._given(row)
        if kind in CALLING:
            inner = [graph for attribute, graph in self._index.called_by(row) if attribute != "cond"]
            made = [found for graph in inner if (found := self._result(graph, slot)) != NOT_FOUND]
            return [(found, 0) for found in made] or None
        return None

    def _given(self, row: int) -> list[Output] | None:
        """What an argument of a graph is where the graph is called."""
        graph = int(self._index.table.graph[row])
        caller = self._index.caller.get(graph, NOT_FOUND)
        if caller == NOT_FOUND:
            return None
        attribute = self._attributes.get(graph, "")
        inputs = self._inputs(caller)[0 if attribute in WHOLE else 1 :]
        arguments = self._of(self._arguments, graph, ARGUMENT)
        if len(inputs) != len(arguments):
            return None
        position = arguments.index(row)
        given = [inputs[position]]
        if self._turns and attribute in STEPPED:
            bodies = [body for name, body in self._index.called_by(caller) if name == "body"]
            given += [(made, 0) for body in bodies if (made := self._result(body, position)) not in {NOT_FOUND, row}]
        return given

    def _result(self, graph: int, slot: int) -> int:
        """Row of the node that stands for a result of a graph: those that nothing in the graph takes, the last ones."""
        caller = self._index.caller.get(graph, NOT_FOUND)
        outputs = len(self._index.table.specs_of(caller)) if caller != NOT_FOUND else 0
        results = self._of(self._results, graph, RESULT)
        results = results[max(0, len(results) - outputs) :]
        return results[slot] if slot < len(results) else NOT_FOUND

    def _of(self, known: dict[int, list[int]], graph: int, kind: str) -> list[int]:
        """Arguments or results of a graph, in the order of creation."""
        if graph not in known:
            table = self._index.table
            rows = table.rows_of(graph)
            numbers: Iterable[int] = range(rows.start, rows.stop)
            if kind == RESULT:
                taken = set(table.producers[table.first_input[rows.start] : table.first_input[rows.stop]].tolist())
                numbers = (row for row in numbers if row not in taken)
            known[graph] = [row for row in numbers if table.type_of(row) == kind]
        return known[graph]
