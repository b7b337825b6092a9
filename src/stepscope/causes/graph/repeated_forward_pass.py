"""Parts of the step's graph that repeat the computation of another part: the same ops on the same inputs.

Nodes are numbered by what they compute (their type, their outputs' shapes, the numbers of their inputs): nodes with the
same number give the same value, as long as the variables between them are not changed. A node that draws random
numbers, calls a graph, changes something or has no input equals no other.

A pass that reads weights after the step has updated them sees new ones. It is a copy only if all of its results are
added up in variables: metrics of the step, for which the first pass serves as well (as in Keras' own ``fit``). A result
that is returned, such as a policy's change by the update, or differentiated, is meant to see the new weights.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND, PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from stepscope.derive.graph.index import GraphIndex

HEAVY = PRODUCTS | {"Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "FusedBatchNormV3"}
"""At least one op of these types is in a pass."""
_UNIQUE = ("Random", "Multinomial", "Assign", "Call", "While", "If", "Case", "Iterator", "PyFunc", "TensorList")
"""Parts of types of ops that give a different result each time."""
_READS = frozenset({"ReadVariableOp", "Identity"})
_WRITES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
"""Parts of types of ops that write the variable which is their first input."""
_ENDS = ("Assign", "Assert", "NoOp")
"""Parts of types of ops in which metrics, and checks of them, end."""


class Copy(Struct, frozen=True, kw_only=True):
    """A part of the graph that another part computes as well."""

    nodes: tuple[int, ...]
    """Rows."""
    heavy: tuple[int, ...]
    """Rows of products and convolutions, in order of creation."""
    originals: tuple[int, ...]
    """Row that each of ``heavy`` repeats."""
    differentiated: bool
    """Whether gradients are taken of both it and the part it repeats: one of the two would suffice."""


def build(index: GraphIndex) -> tuple[Copy, ...]:
    """Copies in the steps' graphs that could be left out; the first node of each value stays."""
    graphs = sorted({int(index.table.graph[row]) for row in index.table.of_types(*HEAVY).tolist()})
    return tuple(copy for graph in graphs if not index.of_data(graph) for copy in _in_graph(index, graph))


def _in_graph(index: GraphIndex, graph: int) -> list[Copy]:
    first = {row: rows[0] for rows in _alike(index, graph) for row in rows[1:]}
    differentiated = _differentiated(index, graph) if first else set()
    found = []
    for part in _parts(index, first):
        heavy = tuple(row for row in part if index.table.type_of(row) in HEAVY)
        if not heavy:
            continue
        if _sees_update(index, graph, part) and not (
            differentiated.isdisjoint(part) and _ends_in_variables(index, graph, part)
        ):
            continue
        both = not differentiated.isdisjoint(part) and any(first[row] in differentiated for row in part)
        originals = tuple(first[row] for row in heavy)
        found.append(Copy(nodes=tuple(part), heavy=heavy, originals=originals, differentiated=both))
    return found


def _sees_update(index: GraphIndex, graph: int, part: list[int]) -> bool:
    """Whether it reads a variable written by an earlier node of the graph: nodes are in program order."""
    table = index.table
    rows = table.rows_of(graph)
    read: dict[int, int] = {}
    for row in sorted({p for one in part for p in table.inputs_of(one).tolist()} - {NOT_FOUND}):
        if table.type_of(row) == "ReadVariableOp" and len(table.inputs_of(row)):
            read[int(table.inputs_of(row)[0])] = row
    return any(
        any(kind in table.type_of(row) for kind in _WRITES) and row < read.get(int(source), NOT_FOUND)
        for row in range(rows.start, max(read.values(), default=rows.start))
        for source in table.inputs_of(row)[:1]
    )


def _ends_in_variables(index: GraphIndex, graph: int, part: list[int]) -> bool:
    """Whether all of its results are written to variables."""
    table = index.table
    rows = table.rows_of(graph)
    reached = set(part)
    used: set[int] = set()
    for row in range(part[0], rows.stop):
        sources = reached.intersection(table.inputs_of(row).tolist())
        used |= sources
        if sources:
            reached.add(row)
    return all(any(kind in table.type_of(row) for kind in _ENDS) for row in reached - used)


def _alike(index: GraphIndex, graph: int) -> list[list[int]]:
    """Groups of rows that compute the same, without reads of variables."""
    table = index.table
    rows = table.rows_of(graph)
    number: dict[int, int] = {}
    known: dict[Hashable, int] = {}
    groups: dict[int, list[int]] = defaultdict(list)
    for row in range(rows.start, rows.stop):
        key = _key(index, row, number)
        number[row] = known.setdefault(key, len(known))
        if table.type_of(row) not in _READS and len(table.inputs_of(row)):
            groups[number[row]].append(row)
    return [alike for alike in groups.values() if len(alike) > 1]


def _key(index: GraphIndex, row: int, number: dict[int, int]) -> Hashable:
    table = index.table
    kind = table.type_of(row)
    first, last = int(table.first_input[row]), int(table.first_input[row + 1])
    inputs = [number.get(int(p), -1) for p in table.producers[first:last]]
    if kind == "Const":
        # Values are not recorded: those made by one layer under one name in each of its calls are taken to be equal.
        owner = int(table.owner[row])
        return (kind, int(table.outputs[row]), owner, _end(table.name_of(row))) if owner else row
    if not inputs or -1 in inputs or index.is_gradient(row) or any(part in kind for part in _UNIQUE):
        return row
    slots = tuple(table.slots[first:last].tolist())
    return (kind, int(table.outputs[row]), tuple(inputs), slots)


def _end(name: str) -> tuple[str, ...]:
    """The last two parts of a name: the parts before them are numbered by the call of the layer."""
    return tuple(name.split("/")[-2:])


def _parts(index: GraphIndex, rows: Iterable[int]) -> list[list[int]]:
    """The rows as connected parts, the part made first in front."""
    part: dict[int, int] = {}
    parts: dict[int, list[int]] = {}
    for row in sorted(rows):
        joined = {part[p] for p in index.table.inputs_of(row).tolist() if p in part}
        mine = min(joined, default=row)
        parts.setdefault(mine, []).append(row)
        for other in joined - {mine}:
            parts[mine] += parts.pop(other)
        part.update(dict.fromkeys(parts[mine], mine))
    return [sorted(parts[first]) for first in sorted(parts)]


def _differentiated(index: GraphIndex, graph: int) -> set[int]:
    """Rows that a gradient's node reads."""
    rows = index.table.rows_of(graph)
    gradients = (row for row in range(rows.start, rows.stop) if index.is_gradient(row))
    return {producer for row in gradients for producer in index.table.inputs_of(row).tolist()}
