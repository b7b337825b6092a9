"""Tables of which a step looks up some rows but processes all: decaying moments, a regularizer, a dense gradient."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.graph.whole_arrays import MATRIX, Weight, variables_of_sessions, weights, working_on
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import PRODUCTS
from stepscope.model.log.graph import specs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from stepscope.derive.graph.index import GraphIndex

LOOKUPS = ("ResourceGather", "GatherV2", "Gather")
_FREE = frozenset({*LOOKUPS, "ReadVariableOp", "Identity", "Placeholder", "Shape", "Const", "StopGradient"})
"""Ops that read a table or pass it on without processing its rows."""
_HOLDERS = frozenset({"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp"})
_ENTRIES = frozenset({"Placeholder", "_Arg", "IteratorGetNext"})
"""Where values enter a graph."""


class TableUpdate(Struct, frozen=True, kw_only=True):
    """A table, where it is looked up, and the ops that process all of its rows."""

    table: Weight
    lookup: int
    """Row of the look-up's node."""
    rows: int
    """Rows looked up by each run of that node; 0 if unknown."""
    nodes: frozenset[int]
    penalties: tuple[int, ...] = ()
    """Those of the nodes that take all of the table in the forward pass, and are differentiated: a regularizer."""
    before: tuple[int, ...] = ()
    """Those of the nodes that make, of all of the table, what is then looked up in."""

    @property
    def unused(self) -> float:
        """Share of the table that a look-up does not touch."""
        return max(0.0, 1.0 - self.rows / self.table.shape[0])


def build(index: GraphIndex, least: int, samples: int = 0) -> tuple[TableUpdate, ...]:
    """Tables of at least ``least`` elements, except those also multiplied as a whole, since all of such a table
    changes; ``samples``: in a step, 0: unknown.
    """
    shapes = FullShapes(index, samples)
    tables = {w.shape: w for w in weights(index) if len(w.shape) == MATRIX and w.elements >= least}
    seen = dict[tuple[int, ...], TableUpdate]()
    for row, shape in _lookups(index):
        if shape not in tables or shape in seen:
            continue
        every = working_on(index, shape)
        nodes = _of_steps(index, (r for r in every if index.table.type_of(r) not in _FREE))
        if nodes and not any(index.table.type_of(r) in PRODUCTS for r in nodes):
            # A read copies the variable where other ops of the step change single rows of it.
            reads = {r for r in every if index.table.type_of(r) == "ReadVariableOp"}
            before = _before(index, int(index.table.inputs_of(row)[0]))
            seen[shape] = TableUpdate(
                table=tables[shape],
                lookup=row,
                rows=_rows(index, shapes, row),
                nodes=nodes | reads | before,
                penalties=_penalties(index, nodes - before),
                before=tuple(sorted(before)),
            )
    return tuple(seen.values())


def _lookups(index: GraphIndex) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Rows of the nodes of steps that look up rows of a table, with the table's shape."""
    table = index.table
    variables = {(g.id, number): text for g in index.graphs.values() for number, _, text, _ in g.variables}
    of_sessions = variables_of_sessions(index)
    for row in table.of_types(*LOOKUPS).tolist():
        graph, inputs = int(table.graph[row]), table.inputs_of(row)
        if index.of_data(graph) or index.is_gradient(row) or not len(inputs) or inputs[0] < 0:
            continue
        source = int(inputs[0])
        text = variables.get((graph, int(table.node[source])), "")
        (spec, *_) = (
            specs(text) or ((of_sessions[source],) if source in of_sessions else table.specs_of(source)) or (None,)
        )
        if spec is not None and spec.shape:
            yield row, spec.shape


def _of_steps(index: GraphIndex, rows: Iterable[int]) -> frozenset[int]:
    """Those of some nodes that work on variables or on data: a session's graph also has what makes the first values."""
    known: dict[int, bool] = {}
    return frozenset(row for row in rows if _works(index, row, known))


def _works(index: GraphIndex, row: int, known: dict[int, bool]) -> bool:
    """Whether a node's value depends on what a variable or an input holds; of an assignment, the value assigned."""
    table = index.table
    given = table.inputs_of(row).tolist()
    left = given[1:] if table.type_of(row) == "AssignVariableOp" else given or [row]
    seen: set[int] = set()
    while left:
        at = left.pop()
        if at < 0 or at in seen:
            continue
        seen.add(at)
        kind = table.type_of(at)
        if known.get(at) or kind in _HOLDERS or (kind in _ENTRIES and len(table.inputs_of(at)) == 0):
            known.update({row: True})
            return True
        if at not in known:
            left += table.inputs_of(at).tolist()
    known.update(dict.fromkeys(seen, False))
    return False


def _before(index: GraphIndex, source: int) -> frozenset[int]:
    """Nodes that make what is looked up in of a variable; none where this is the variable, or what enters the graph."""
    table = index.table
    found, left = set[int](), [source]
    while left:
        row = left.pop()
        if row in found or row < 0 or table.type_of(row) in _FREE or not len(table.inputs_of(row)):
            continue
        found.add(row)
        left += table.inputs_of(row).tolist()
    return frozenset(found)


def _rows(index: GraphIndex, shapes: FullShapes, lookup: int) -> int:
    """Rows that a look-up takes: its ids; 0 if unknown."""
    producers, slots = index.table.inputs_of(lookup), index.table.slots_of(lookup)
    shape = shapes.of(lookup, 0)
    if shape is not None and shape:
        return int(np.prod(shape[:-1]))
    ids = shapes.of(int(producers[1]), int(slots[1])) if len(producers) > 1 and producers[1] >= 0 else None
    return int(np.prod(ids)) if ids is not None else 0


def _penalties(index: GraphIndex, nodes: Collection[int]) -> tuple[int, ...]:
    """Nodes of the forward pass that read a whole variable which a gradient's node reads as well."""
    table = index.table
    readers: dict[int, set[int]] = defaultdict(set)
    for row in nodes:
        for producer in table.inputs_of(row).tolist():
            if producer >= 0 and table.type_of(producer) == "ReadVariableOp":
                readers[producer].add(row)
    found = (users for users in readers.values() if any(index.is_gradient(user) for user in users))
    return tuple(sorted(row for users in found for row in users if not index.is_gradient(row)))
