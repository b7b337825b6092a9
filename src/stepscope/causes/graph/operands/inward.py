"""The nodes of graphs and of those that they call, with what is known of the tensors that are handed in.

Serves copied_axes, read_parts and zero_operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stepscope.causes.graph import invariant_work_in_loop
from stepscope.derive.graph.independent_loops import ARGUMENT, WHILE
from stepscope.derive.graph.index import CALLING, NOT_FOUND
from stepscope.model.log.graph import UNKNOWN
from stepscope.wire.replayed_ops import MAX_INPUTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stepscope.causes.graph.operands.axis_parts import Key
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.graph import GraphTable, TensorSpec

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

    Of a loop only those that each iteration leaves as they are; of a call with very many only the first, which are
    recorded.
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
            if len(inputs) == MAX_INPUTS and "Call" in table.type_of(row):
                arguments = arguments[:MAX_INPUTS]
            inputs = inputs[len(inputs) - len(arguments) :]  # before them stands what a branch depends on
        given = _matched(table, arguments, inputs) if len(inputs) == len(arguments) else ()
        yield graph, [((argument, 0), key) for argument, key in given if argument in kept]


def _matched(table: GraphTable, arguments: Sequence[int], inputs: Sequence[Key]) -> Iterator[tuple[int, Key]]:
    """Arguments with what is handed in for them, in order.

    Placeholders of a dictionary are made in its own order and handed in by the order of its keys: then an argument gets
    the first input of its type and shape.
    """
    specs = [_spec(table, key) for key in inputs]
    left = list(range(len(inputs)))
    wanted = [_spec(table, (argument, 0)) for argument in arguments]
    if all(_same(one, other) for one, other in zip(wanted, specs, strict=True)):
        yield from zip(arguments, inputs, strict=True)
        return
    for argument, spec in zip(arguments, wanted, strict=True):
        at = next((at for at in left if _same(spec, specs[at])), None)
        if at is not None:
            left.remove(at)
            yield argument, inputs[at]


def _spec(table: GraphTable, key: Key) -> TensorSpec | None:
    specs = table.specs_of(key[0]) if key[0] != NOT_FOUND else ()
    return specs[key[1]] if key[1] < len(specs) else None


def _same(one: TensorSpec | None, other: TensorSpec | None) -> bool:
    """Whether a tensor may be of both types and shapes; what is unknown may be anything."""
    if one is None or other is None:
        return True
    if one.dtype != other.dtype:
        return False
    if one.shape is None or other.shape is None:
        return True
    if len(one.shape) != len(other.shape):
        return False
    return all(UNKNOWN in pair or pair[0] == pair[1] for pair in zip(one.shape, other.shape, strict=True))
