"""Matrix products one side of which is a one-hot matrix: a look-up of rows, written as a product.

So is the product with a multi-hot or count matrix (a bag of words): the sum of the rows that are looked up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.derive.graph_index import GraphIndex

PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"})
THROUGH = frozenset({"Reshape", "Cast", "Identity", "Squeeze", "ExpandDims", "Transpose", "StopGradient"})
"""What leaves a one-hot matrix one."""
BAGS = frozenset({"DenseBincount"})
"""What makes a row of many columns of a few categories at once."""
OVER_POSITIONS = frozenset({"Max", "Sum", "Mean", "Any"})
"""What makes such a row of one-hot rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHotProducts:
    """A one-hot matrix and the products with it."""

    one_hot: int
    """Row of the node that makes it."""
    products: tuple[int, ...]
    """Rows of the products, those of gradients left out."""
    nodes: frozenset[int]
    """Everything that a look-up would not need: the matrix, what passes it on, the products with their gradients."""
    bag: bool = False
    """A row of the matrix stands for several categories: their rows are to be added up."""

    def depth(self, index: GraphIndex) -> int:
        """Into how many columns; 0 where it is not known."""
        passed = [row for row in self.nodes if index.table.type_of(row) in THROUGH | OVER_POSITIONS]
        return _columns(index, self.one_hot) or max((_columns(index, row) for row in passed), default=0)


def build(index: GraphIndex) -> tuple[OneHotProducts, ...]:
    """One-hot matrices of the steps' graphs that are multiplied."""
    table = index.table
    found = []
    for one_hot in table.of_types("OneHot", *BAGS).tolist():
        graph = int(table.graph[one_hot])
        if index.of_data(graph):
            continue
        users = _users(index, graph)
        nodes, todo = {one_hot}, [one_hot]
        products = set()
        bag = table.type_of(one_hot) in BAGS
        while todo:
            at = todo.pop()
            for user in users[at]:
                kind = table.type_of(user)
                summed = kind in OVER_POSITIONS and _keeps_columns(index, at, user)
                if kind in PRODUCTS:
                    products.add(user)
                elif (kind in THROUGH or summed) and user not in nodes:
                    bag = bag or summed
                    nodes.add(user)
                    todo.append(user)
        forward = sorted(row for row in products if not index.is_gradient(row))
        if forward:
            every = frozenset(nodes | products)
            found.append(OneHotProducts(one_hot=one_hot, products=tuple(forward), nodes=every, bag=bag))
    return tuple(found)


def _columns(index: GraphIndex, row: int) -> int:
    (spec, *_) = index.table.specs_of(row) or (None,)
    return max(0, spec.shape[-1]) if spec is not None and spec.shape else 0


def _keeps_columns(index: GraphIndex, row: int, reduced: int) -> bool:
    """Whether a reduction leaves the columns and joins rows."""
    (before, *_) = index.table.specs_of(row) or (None,)
    (after, *_) = index.table.specs_of(reduced) or (None,)
    if before is None or after is None or not before.shape or not after.shape:
        return False
    return len(after.shape) < len(before.shape) and before.shape[-1] == after.shape[-1] > 1


def _users(index: GraphIndex, graph: int) -> dict[int, list[int]]:
    users: dict[int, list[int]] = defaultdict(list)
    rows = index.table.rows_of(graph)
    for row in range(rows.start, rows.stop):
        for producer in index.table.inputs_of(row).tolist():
            users[producer].append(row)
    return users
