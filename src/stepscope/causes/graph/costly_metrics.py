"""Nodes of a training step that serve only its metrics: nothing but counters depends on them.

A counter is an untrained variable that belongs to no layer and is written with a value that depends on the batch but
not on a gradient: an optimizer's state depends on gradients, averages of weights depend on weights. Variables on which
gradients depend are no counters either: a codebook that follows the batches, a bank of features, a running mean that
scales.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stepscope.derive.graph.index import GraphIndex

_WRITES = (
    *("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceStridedSliceAssign"),
    *("ResourceScatterUpdate", "ResourceScatterAdd", "ResourceScatterNdUpdate", "ResourceScatterNdAdd"),
)
_CHECKS = ("Assert", "NoOp")
"""Types of nodes without consumers that metrics may have too."""
_INPUTS = ("Placeholder", "IteratorGetNext")
"""Types by which a batch enters a graph."""


class MetricWork(Struct, frozen=True, kw_only=True):
    """Work of a graph for one metric, used by nothing but metrics."""

    name: str
    """Common prefix of the names of its counters."""
    nodes: tuple[int, ...]
    """Rows; metrics may share some."""


def build(index: GraphIndex) -> tuple[MetricWork, ...]:
    """Metric work of the graphs that take gradients."""
    table = index.table
    graphs = sorted({int(table.graph[row]) for row in table.of_types(*_WRITES).tolist()})
    return tuple(
        one for graph in graphs if graph in index.graphs and not index.of_data(graph) for one in _of_graph(index, graph)
    )


def _of_graph(index: GraphIndex, graph: int) -> Iterator[MetricWork]:
    table = index.table
    rows = range(table.rows_of(graph).start, table.rows_of(graph).stop)
    variables = {number: (name, trainable) for number, name, _, trainable in index.graphs[graph].variables}
    gradients, batch = set[int](), set[int]()
    used = set[int]()
    for row in rows:
        inputs = [i for i in table.inputs_of(row).tolist() if i in rows]
        used.update(inputs)
        if index.is_gradient(row) or not gradients.isdisjoint(inputs):
            gradients.add(row)
        if _brings_batch(index, row) or not batch.isdisjoint(inputs):
            batch.add(row)
    if not gradients:
        return
    ends = [row for row in rows if row not in used]
    trained = _of_training(index, gradients, ends)
    counters: dict[str, list[int]] = {}
    other = []
    for row in ends:
        name = "" if row in trained or row not in batch else _counter(index, row, variables, trained)
        if name:
            counters.setdefault(name.rpartition("/")[0], []).append(row)
        elif table.type_of(row) not in _CHECKS:
            other.append(row)
    needed = _behind(index, other)
    for name, written in counters.items():
        yield MetricWork(name=name, nodes=tuple(sorted(_behind(index, written) - needed)))


def _counter(index: GraphIndex, row: int, variables: Mapping[int, tuple[str, bool]], trained: Collection[int]) -> str:
    """The name of the variable that a node writes, unless it is ``trained``, read for training, or a layer's."""
    table = index.table
    handle = next(iter(table.inputs_of(row).tolist()), NOT_FOUND)
    if table.type_of(row) not in _WRITES or handle == NOT_FOUND or handle in trained:
        return ""
    name, trainable = variables.get(int(table.node[handle]), ("", True))
    return "" if trainable or index.maker_of(row)[1] is not None else name


def _of_training(index: GraphIndex, gradients: set[int], ends: list[int]) -> set[int]:
    """The gradients, everything they depend on, and the writers of variables among that."""
    table = index.table
    found = _behind(index, gradients)
    left = [row for row in ends if table.type_of(row) in _WRITES and row not in found]
    while more := [row for row in left if found.intersection(table.inputs_of(row)[:1].tolist())]:
        found |= _behind(index, more)
        left = [row for row in left if row not in found]
    return found


def _brings_batch(index: GraphIndex, row: int) -> bool:
    table = index.table
    return table.type_of(row).startswith(_INPUTS) and not any(spec.dtype == "resource" for spec in table.specs_of(row))


def _behind(index: GraphIndex, ends: Collection[int]) -> set[int]:
    """The ends and everything they depend on, rows."""
    seen, left = set(ends), list(ends)
    while left:
        for row in index.table.inputs_of(left.pop()).tolist():
            if row >= 0 and row not in seen:
                seen.add(row)
                left.append(row)
    return seen
