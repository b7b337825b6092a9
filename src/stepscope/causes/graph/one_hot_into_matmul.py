"""Matrix products with a one-hot matrix on one side: a look-up of rows, written as a product.

A product with a multi-hot or count matrix (a bag of words) is the sum of the rows looked up. A product with the
transposed matrix adds up rows by category.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive.graph.index import NOT_FOUND

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex

PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"})
THROUGH = frozenset({"Reshape", "Cast", "Identity", "Squeeze", "ExpandDims", "Transpose", "StopGradient"})
"""Types that keep a one-hot matrix one-hot."""
BAGS = frozenset({"DenseBincount"})
"""Types that make a row of many columns from several categories at once."""
OVER_POSITIONS = frozenset({"Max", "Sum", "Mean", "Any"})
"""Types that make such a row from one-hot rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHotProducts:
    """A one-hot matrix and the products with it."""

    one_hot: int
    """Row of the node that makes the one-hot matrix."""
    products: tuple[int, ...]
    """Rows of the products, without those of gradients."""
    nodes: frozenset[int]
    """Rows that a look-up would not need: the matrix, the nodes that pass it on, the products with their gradients."""
    bag: bool = False
    """Whether a row of the matrix stands for several categories, whose rows are added up."""
    by_category: tuple[int, ...] = ()
    """Those of the products that have a row for each category."""
    columns: int = 0
    """Columns of the matrix, that is categories; 0 if unknown."""


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
        products: dict[int, int] = {}
        bags = {one_hot} if table.type_of(one_hot) in BAGS else set[int]()
        while todo:
            at = todo.pop()
            for user in users[at]:
                kind = table.type_of(user)
                summed = kind in OVER_POSITIONS and _keeps_columns(index, at, user)
                if kind in PRODUCTS:
                    products[user] = at
                elif (kind in THROUGH or summed) and user not in nodes:
                    if summed or at in bags:
                        bags.add(user)
                    nodes.add(user)
                    todo.append(user)
        forward = sorted(row for row in products if not index.is_gradient(row))
        if forward:
            columns = _columns(index, one_hot) or max(_columns(index, row) for row in nodes)
            one = OneHotProducts(
                one_hot=one_hot,
                products=tuple(forward),
                nodes=frozenset([*nodes, *products]),
                bag=any(products[row] in bags for row in forward),
                by_category=tuple(row for row in forward if _has_categories(index, row, products[row], columns)),
                columns=columns,
            )
            found.append(one)
    return tuple(found)


def _has_categories(index: GraphIndex, product: int, matrix: int, columns: int) -> bool:
    """Whether the product's rows are the ``columns`` of the matrix, and not rows of the other factor.

    If equal sizes leave it open, the looked-up factor is taken to be a variable.
    """
    table = index.table
    others = [row for row in table.inputs_of(product).tolist() if row not in {matrix, NOT_FOUND}]
    if not others or not columns or not _has_size(index, product, columns):
        return False
    return not _has_size(index, others[0], columns) or not _is_variable(index, others[0])


def _has_size(index: GraphIndex, row: int, size: int) -> bool:
    return any(size in (spec.shape or ()) for spec in index.table.specs_of(row))


def _is_variable(index: GraphIndex, row: int) -> bool:
    while index.table.type_of(row) in THROUGH and len(index.table.inputs_of(row)):
        row = int(index.table.inputs_of(row)[0])
    return index.table.type_of(row).startswith(("ReadVariable", "Variable"))


def _columns(index: GraphIndex, row: int) -> int:
    (spec, *_) = index.table.specs_of(row) or (None,)
    return max(0, spec.shape[-1]) if spec is not None and spec.shape else 0


def _keeps_columns(index: GraphIndex, row: int, reduced: int) -> bool:
    """Whether a reduction keeps the columns and joins rows."""
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
