"""Two consecutive matrix products that are far less work in the other order: (A B) C as A (B C).

The work of a product follows from the shapes alone: rows x inner dimension x columns. Transposed factors have the same
elements, so the inner dimension is the elements of a factor over those of its remaining dimensions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex

KINDS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
_SCALING = frozenset({"Mul", "RealDiv", "DivNoNan"})
_MATRIX = 2
_SIDES = 2


class ProductChain(Struct, frozen=True, kw_only=True):
    """Two products, and the nodes between them that scale the first result."""

    first: int
    """Row of the first product."""
    second: int
    scaling: tuple[int, ...]
    shape: tuple[int, int]
    """Rows and columns of the result between them."""
    left: float
    """Work in the other order, as a part of the work in this one."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Both products and the nodes between them."""
        return (self.first, self.second, *self.scaling)


def build(index: GraphIndex, most: float, samples: int = 0) -> tuple[ProductChain, ...]:
    """Chains of the steps' graphs whose other order takes at most ``most`` of the work.

    ``samples``: in a step, which graphs often leave open; 0: unknown.
    """
    shapes = FullShapes(index, samples)
    users: dict[int, list[int]] = defaultdict(list)
    firsts = [r for r in index.table.of_types(*KINDS).tolist() if not _aside(index, r)]
    for graph in {int(index.table.graph[row]) for row in firsts}:
        rows = index.table.rows_of(graph)
        for row in range(rows.start, rows.stop):
            for producer in set(index.table.inputs_of(row).tolist()):
                if not index.is_gradient(row):
                    users[producer].append(row)
    return tuple(chain for row in firsts for chain in _chains(index, shapes, users, row) if chain.left <= most)


def _aside(index: GraphIndex, row: int) -> bool:
    return index.of_data(int(index.table.graph[row])) or index.is_gradient(row)


def _chains(index: GraphIndex, shapes: FullShapes, users: dict[int, list[int]], first: int) -> Iterator[ProductChain]:
    """The product that alone consumes the result of ``first``, if there is one."""
    at, passed = first, list[int]()
    while len(users[at]) == 1:
        user = users[at][0]
        if index.table.type_of(user) in KINDS:
            found = _work(index, shapes, first, at, user)
            if found is not None:
                yield ProductChain(first=first, second=user, scaling=tuple(passed), shape=found[0], left=found[1])
            return
        if not _scales(index, at, user):
            return
        passed.append(user)
        at = user


def _scales(index: GraphIndex, row: int, user: int) -> bool:
    """Whether a node passes a matrix on, or multiplies or divides it by one number."""
    kind = index.table.type_of(user)
    if kind == "Identity":
        return True
    inputs = index.table.inputs_of(user).tolist()
    if kind not in _SCALING or len(inputs) != _SIDES or NOT_FOUND in inputs or (kind != "Mul" and inputs[0] != row):
        return False
    other = inputs[1] if inputs[0] == row else inputs[0]
    return _shape(index, other) == ()


def _work(
    index: GraphIndex, shapes: FullShapes, first: int, middle: int, second: int
) -> tuple[tuple[int, int], float] | None:
    """Shape of the first product's result, and the other order's part of the work; None if undetermined."""
    sides = index.table.inputs_of(second).tolist()
    between, result = (shapes.of(row, 0) or _shape(index, row) for row in (first, second))
    given = int(index.table.inputs_of(first)[0]) if len(index.table.inputs_of(first)) else NOT_FOUND
    one = shapes.of(given, 0) or _shape(index, given) if given != NOT_FOUND else None
    if between is None or result is None or one is None or sides.count(middle) != 1 or len(sides) != _SIDES:
        return None
    if not len(between) == len(result) == len(one) >= _MATRIX:
        return None
    (rows, columns), (out_rows, out_columns) = between[-2:], result[-2:]
    taken = one[-2] * one[-1]
    kept, other = (out_rows, out_columns) if sides[0] == middle else (out_columns, out_rows)
    if min(rows, columns, kept, other, taken, *one[-2:]) <= 0 or taken % rows or (rows * columns) % kept:
        return None
    inner, shared = taken // rows, rows * columns // kept
    now = rows * columns * inner + kept * shared * other
    return (rows, columns), inner * other * (kept + shared) / now


def _shape(index: GraphIndex, row: int) -> tuple[int, ...] | None:
    if row == NOT_FOUND:
        return None
    (spec, *_) = index.table.specs_of(row) or (None,)
    return spec.shape if spec is not None else None
