"""Results of which the step uses a small part only: the last position of all scores, the diagonal of all pairs.

Where every consumer of a result only selects from it, the rest was computed for nothing. The same holds for what the
result was made from element by element, if nothing else uses that: the work is followed back through such ops, up to
the products that made it. What normalises or accumulates over the result (softmax, sorting, sums over positions) needs
all of it, and ends the search.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stepscope.derive.graph.index import GraphIndex

SELECTING = frozenset({"StridedSlice", "Slice", "GatherV2", "GatherNd", "MatrixDiagPart", "MatrixDiagPartV2"}) | {
    "MatrixDiagPartV3"
}
"""Types that take some elements of their first input."""
PRODUCTS = frozenset(
    {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv1D", "Conv2D", "Conv3D", "Einsum"}
) | {"DepthwiseConv2dNative"}
"""Types whose elements can be computed one by one from inputs that are needed whole."""
REDUCING = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin"})
"""Types that make one element from many: fewer elements need fewer inputs."""
PASSING = frozenset({"Identity", "Reshape", "Squeeze", "ExpandDims", "Transpose", "StopGradient"})
"""Types that keep all elements."""
POINTWISE = (
    frozenset({"Abs", "Add", "AddV2", "BiasAdd", "Cast", "Cos", "Div", "DivNoNan", "Elu", "Equal", "Erf", "Exp"})
    | {"Expm1", "Floor", "Greater", "GreaterEqual", "LeakyRelu", "Less", "LessEqual", "Log", "Log1p", "LogicalAnd"}
    | {"LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul", "Neg", "NotEqual", "Pow", "RealDiv", "Reciprocal"}
    | {"Relu", "Relu6", "Round", "Rsqrt", "Select", "SelectV2", "Selu", "Sigmoid", "Sign", "Sin", "Softplus"}
    | {"Softsign", "Sqrt", "Square", "SquaredDifference", "Sub", "Tanh"}
)
"""Types of which each element depends on the elements at its own place."""
FEWEST = 8
"""Places that an axis of unknown size is taken to have, where one of them is used; sequences mostly have more."""
ASIDE = frozenset({"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "NoOp"})
"""Consumers that take no value."""


class PartlyUsed(Struct, frozen=True, kw_only=True):
    """A result of which little is used, and the work behind it."""

    selecting: tuple[int, ...]
    """Rows of the nodes that select from it."""
    nodes: tuple[int, ...]
    """Rows of the nodes whose results are only used through them, the result's own node first."""
    shape: tuple[int, ...]
    """Shape of the result; ``UNKNOWN``: left open."""
    used_ratio: float
    """Share of its elements that is used, at most."""
    jacobian_of: int = 0
    """Samples, if the result is a Jacobian of all samples by all samples."""

    @property
    def elements(self) -> int:
        """Elements of the result, at least."""
        return _count(self.shape)

    @property
    def made_by(self) -> int:
        """Row of the node that makes the result."""
        return self.nodes[0]


def build(index: GraphIndex, samples: int, most: float, min_elements: int) -> tuple[PartlyUsed, ...]:
    """Results of the steps' graphs of which at most ``most`` is used.

    Args:
        index: the graphs.
        samples: samples in a step, which graphs often leave open; 0: unknown.
        most: largest share of the elements that is used.
        min_elements: of the result.
    """
    shapes = FullShapes(index, samples)
    selecting = [row for row in index.table.of_types(*sorted(SELECTING)).tolist() if not index.is_gradient(row)]
    found = []
    for graph in sorted({int(index.table.graph[row]) for row in selecting}):
        if not index.of_data(graph):
            found += list(_of_graph(index, shapes, graph, most, min_elements))
    return tuple(found)


def _of_graph(
    index: GraphIndex, shapes: FullShapes, graph: int, most: float, min_elements: int
) -> Iterator[PartlyUsed]:
    table = index.table
    rows = table.rows_of(graph)
    users: dict[int, list[int]] = defaultdict(list)
    for row in range(rows.start, rows.stop):
        if table.type_of(row) not in ASIDE and not index.is_gradient(row):
            for producer in set(table.inputs_of(row).tolist()):
                users[producer].append(row)
    sources = dict.fromkeys(
        int(table.inputs_of(row)[0])
        for row in range(rows.start, rows.stop)
        if table.type_of(row) in SELECTING and len(table.inputs_of(row))
    )
    for source in sources:
        taken = users.get(source, [])
        if source == NOT_FOUND or not _computed(index, source) or not all(_selects(index, u, source) for u in taken):
            continue
        shape = _shape(index, shapes, source)
        parts = [part_of(shape, _shape(index, shapes, user)) for user in taken]
        used = sum(part for part in parts if part is not None)
        if shape is None or None in parts or not 0 < used <= most or _count(shape) < min_elements:
            continue
        by_rows = all(_takes_rows(shape, _shape(index, shapes, user)) for user in taken)
        nodes = _behind(index, shapes, users, source, by_rows=by_rows)
        yield PartlyUsed(selecting=tuple(taken), nodes=nodes, shape=tuple(shape), used_ratio=used)


def _computed(index: GraphIndex, row: int) -> bool:
    kind = index.table.type_of(row)
    return not index.is_gradient(row) and (kind in POINTWISE or kind in PRODUCTS or kind in REDUCING or kind in PASSING)


def _selects(index: GraphIndex, user: int, source: int) -> bool:
    """Whether a node only takes elements of a result."""
    inputs = index.table.inputs_of(user).tolist()
    return index.table.type_of(user) in SELECTING and inputs[0] == source and inputs.count(source) == 1


def _shape(index: GraphIndex, shapes: FullShapes, row: int) -> tuple[int, ...] | None:
    """Shape of a node's first output, with what the graph leaves open; None if its rank is unknown."""
    (spec, *_) = index.table.specs_of(row) or (None,)
    return shapes.of(row, 0) or (spec.shape if spec is not None else None)


def _count(shape: tuple[int, ...]) -> int:
    """Elements, at least."""
    count = 1
    for size in shape:
        count *= max(1, size)
    return count


def part_of(whole: tuple[int, ...] | None, part: tuple[int, ...] | None) -> float | None:
    """Share of the elements that is taken; None if a shape leaves more open than the other.

    An axis of unknown size of which one place is taken counts as one of ``FEWEST``.
    """
    if whole is None or part is None:
        return None
    if _taken_axis(whole, part) is not None:
        at = _taken_axis(whole, part)
        return 1 / (FEWEST if at is None or whole[at] == UNKNOWN else whole[at])
    if sum(size == UNKNOWN for size in whole) != sum(size == UNKNOWN for size in part):
        return None
    return _count(part) / _count(whole)


def _taken_axis(whole: tuple[int, ...], part: tuple[int, ...]) -> int | None:
    """The axis of which a part has one place, if it has all of the others; None if there is no such axis."""
    for at, size in enumerate(whole):
        left = (*whole[:at], *whole[at + 1 :])
        if size not in {0, 1} and part in {left, (*whole[:at], 1, *whole[at + 1 :])}:
            return at
    return None


def _takes_rows(whole: tuple[int, ...], part: tuple[int, ...] | None) -> bool:
    """Whether a part has whole rows: all of the last axis."""
    at = _taken_axis(whole, part) if part is not None else None
    return at is not None and at < len(whole) - 1


def _behind(
    index: GraphIndex, shapes: FullShapes, users: Mapping[int, list[int]], source: int, *, by_rows: bool
) -> tuple[int, ...]:
    """The nodes that serve only a result, the result's own first; ``by_rows``: whole rows of it are used, or not."""
    table = index.table
    elements = _count(_shape(index, shapes, source) or ())
    found, left = {source: None}, [source]
    while left:
        row = left.pop(0)
        kind = table.type_of(row)
        rowwise = by_rows and kind == "MatMul"
        if kind in PRODUCTS and not rowwise:
            continue
        own = _shape(index, shapes, row)
        for at, producer in enumerate(table.inputs_of(row).tolist()):
            if producer == NOT_FOUND or producer in found or not _computed(index, producer):
                continue
            shape = _shape(index, shapes, producer)
            if kind in PASSING or rowwise:
                whole = at == 0
            else:
                whole = shape is not None and (shape == own or (UNKNOWN not in shape and _count(shape) >= elements))
            if whole and all(user in found for user in users.get(producer, ())):
                found[producer] = None
                left.append(producer)
    return tuple(found)
