"""Tables of which a step looks up some rows but processes all: decaying moments, a regularizer, a dense gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.graph.one_hot_into_matmul import PRODUCTS
from stepscope.causes.graph.whole_arrays import MATRIX, Weight, weights, working_on
from stepscope.model.log.graph import UNKNOWN, specs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex

LOOKUPS = ("ResourceGather", "GatherV2", "Gather")
_FREE = frozenset({*LOOKUPS, "ReadVariableOp", "Identity", "Placeholder", "Shape", "Const", "StopGradient"})
"""Ops that read a table or pass it on without processing its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpdate:
    """A table, where it is looked up, and the ops that process all of its rows."""

    table: Weight
    lookup: int
    """Row of the look-up's node."""
    rows: int
    """Rows looked up by each run of that node; 0 if unknown."""
    nodes: frozenset[int]

    @property
    def unused(self) -> float:
        """Share of the table that a look-up does not touch."""
        return max(0.0, 1.0 - self.rows / self.table.shape[0])


def build(index: GraphIndex, least: int) -> tuple[TableUpdate, ...]:
    """Tables of at least ``least`` elements, except those also multiplied as a whole, since all of such a table
    changes.
    """
    tables = {w.shape: w for w in weights(index) if len(w.shape) == MATRIX and w.elements >= least}
    seen = dict[tuple[int, ...], TableUpdate]()
    for row, shape in _lookups(index):
        if shape not in tables or shape in seen:
            continue
        nodes = frozenset(r for r in working_on(index, shape) if index.table.type_of(r) not in _FREE)
        if nodes and not any(index.table.type_of(r) in PRODUCTS for r in nodes):
            seen[shape] = TableUpdate(table=tables[shape], lookup=row, rows=_rows(index, row), nodes=nodes)
    return tuple(seen.values())


def _lookups(index: GraphIndex) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Rows of the nodes of steps that look up rows of a table, with the table's shape."""
    table = index.table
    variables = {(g.id, number): text for g in index.graphs.values() for number, _, text, _ in g.variables}
    for row in table.of_types(*LOOKUPS).tolist():
        graph, inputs = int(table.graph[row]), table.inputs_of(row)
        if index.of_data(graph) or index.is_gradient(row) or not len(inputs) or inputs[0] < 0:
            continue
        source = int(inputs[0])
        text = variables.get((graph, int(table.node[source])), "")
        (spec, *_) = specs(text) or table.specs_of(source) or (None,)
        if spec is not None and spec.shape:
            yield row, spec.shape


def _rows(index: GraphIndex, lookup: int) -> int:
    (spec, *_) = index.table.specs_of(lookup) or (None,)
    if spec is None or not spec.shape or UNKNOWN in spec.shape:
        return 0
    return int(np.prod(spec.shape[:-1]))
