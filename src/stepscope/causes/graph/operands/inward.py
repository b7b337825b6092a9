"""The nodes of graphs and of those that they call, with what is known of the tensors that are handed in.

Serves copied_axes and zero_operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stepscope.causes.graph import invariant_work_in_loop
from stepscope.derive.graph.independent_loops import ARGUMENT, WHILE
from stepscope.derive.graph.index import CALLING, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.causes.graph.operands.axis_parts import Key
    from stepscope.derive.graph.index import GraphIndex

T = TypeVar("T")


def through(index: GraphIndex, graphs: Iterable[int], known: dict[Key, T]) -> Iterator[int]:
    """Rows of graphs and of those that they call, each once. What is ``known`` of a tensor holds of its argument."""
    todo, seen = list(graphs), set[int]()
    while todo:
        graph = todo.pop()
        if graph in seen:
            continue
        seen.add(graph)
        rows = index.table.rows_of(graph)
        for row in range(rows.start, rows.stop):
            yield row
            if index.table.type_of(row) in CALLING:
                for inner, pairs in arguments_of(index, row):
                    known.update((argument, known[key]) for argument, key in pairs if key in known)
                    todo.append(inner)


def arguments_of(index: GraphIndex, row: int) -> Iterator[tuple[int, list[tuple[Key, Key]]]]:
    """The graphs that a node calls, each with pairs of an argument and the tensor that the node hands to it.

    Of a loop only those that each iteration leaves as they are.
    """
    table = index.table
    for attribute, graph in index.called_by(row):
        rows = table.rows_of(graph)
        arguments = [r for r in range(rows.start, rows.stop) if table.type_of(r) == ARGUMENT]
        inputs = list(zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True))
        if table.type_of(row) in WHILE:
            body = graph if attribute == "body" else NOT_FOUND
            kept = invariant_work_in_loop.kept(index, row, body) if body != NOT_FOUND else frozenset()
        else:
            kept = frozenset(arguments)
            inputs = inputs[len(inputs) - len(arguments) :]  # before them stands what a branch depends on
        given = zip(arguments, inputs, strict=True) if len(inputs) == len(arguments) else ()
        yield graph, [((argument, 0), key) for argument, key in given if argument in kept]
