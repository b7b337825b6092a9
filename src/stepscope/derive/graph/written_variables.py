"""The variables that the graphs of a process write; all others give the same value in each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.graph.index import CALLING

if TYPE_CHECKING:
    from collections.abc import Container

    from stepscope.derive.graph.index import GraphIndex

_READS = frozenset({"ReadVariableOp", "ResourceGather", "Identity", "VariableShape", "NoOp"})
"""Ops that take a variable's handle and leave its value unchanged."""


def names(index: GraphIndex) -> frozenset[tuple[str, str]]:
    """Name and type of the variables that any graph writes."""
    found = set()
    for graph in index.graphs.values():
        mine = written(index, graph.id)
        found |= {(name, spec) for row, name, spec in handles(index, graph.id) if row in mine}
    return frozenset(found)


def handles(index: GraphIndex, graph: int) -> list[tuple[int, str, str]]:
    """(row of the handle, name, type and shape) of the variables that a graph takes."""
    table = index.table
    rows = table.rows_of(graph)
    row_of = {int(number): rows.start + i for i, number in enumerate(table.node[rows].tolist())}
    return [(row_of[number], name, spec) for number, name, spec, _ in index.graphs[graph].variables if number in row_of]


def written(index: GraphIndex, graph: int) -> set[int]:
    """Handles in a graph that may be written; a called graph that lists its own variables is checked itself."""
    table = index.table
    taken_from = {row for row, _, _ in handles(index, graph)}
    rows = table.rows_of(graph)
    found: set[int] = set()
    for row in range(rows.start, rows.stop):
        kind = table.type_of(row)
        taken = taken_from.intersection(table.inputs_of(row).tolist()) if kind not in _READS else set()
        if taken and not (kind in CALLING and _only_reads(index, row)):
            found |= taken
    return found


def others(index: GraphIndex, graph: int, names: Container[tuple[str, str]]) -> set[int]:
    """Handles in a graph of the variables that nothing writes; ``names``: variables that some graph writes."""
    own = written(index, graph)
    return {row for row, name, spec in handles(index, graph) if row not in own and (name, spec) not in names}


def _only_reads(index: GraphIndex, row: int) -> bool:
    """Whether every graph called by a node lists the variables that it writes, or writes none."""
    inner = [graph for _, graph in index.called_by(row)]
    return bool(inner) and all(
        index.graphs[graph].variables
        or not any(part in index.table.type_of(r) for r in index.inside(graph) for part in ("Assign", "Resource"))
        for graph in inner
    )
