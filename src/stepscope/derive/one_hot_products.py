"""Matrix products one side of which is a one-hot matrix: a look-up of rows, written as a product."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.derive.graph_index import GraphIndex

PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"})
THROUGH = frozenset({"Reshape", "Cast", "Identity", "Squeeze", "ExpandDims", "Transpose", "StopGradient"})
"""What leaves a one-hot matrix one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHotProducts:
    """A one-hot matrix and the products with it."""

    one_hot: int
    """Row of the node that makes it."""
    products: tuple[int, ...]
    """Rows of the products, those of gradients left out."""
    nodes: frozenset[int]
    """Everything that a look-up would not need: the matrix, what passes it on, the products with their gradients."""

    def depth(self, index: GraphIndex) -> int:
        """Into how many columns; 0 where it is not known."""
        specs = index.table.specs_of(self.one_hot)
        shape = specs[0].shape if specs else None
        return max(0, shape[-1]) if shape else 0


def build(index: GraphIndex) -> tuple[OneHotProducts, ...]:
    """One-hot matrices of the steps' graphs that are multiplied."""
    table = index.table
    found = []
    for one_hot in table.of_types("OneHot").tolist():
        graph = int(table.graph[one_hot])
        if index.of_data(graph):
            continue
        users = _users(index, graph)
        nodes, todo = {one_hot}, [one_hot]
        products = set()
        while todo:
            for user in users[todo.pop()]:
                kind = table.type_of(user)
                if kind in PRODUCTS:
                    products.add(user)
                elif kind in THROUGH and user not in nodes:
                    nodes.add(user)
                    todo.append(user)
        forward = sorted(row for row in products if not index.is_gradient(row))
        if forward:
            found.append(OneHotProducts(one_hot=one_hot, products=tuple(forward), nodes=frozenset(nodes | products)))
    return tuple(found)


def _users(index: GraphIndex, graph: int) -> dict[int, list[int]]:
    users: dict[int, list[int]] = defaultdict(list)
    rows = index.table.rows_of(graph)
    for row in range(rows.start, rows.stop):
        for producer in index.table.inputs_of(row).tolist():
            users[producer].append(row)
    return users
