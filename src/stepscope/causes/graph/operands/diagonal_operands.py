"""Products and solves with a diagonal matrix that was made as a whole: they scale rows or columns.

Serves wasteful_operands.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING

from stepscope.causes.graph.operands import wasteful_work
from stepscope.causes.graph.operands.wasteful_work import BALANCE, BYTES, LU, TRIANGLES, WastefulWork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.full_shapes import FullShapes
    from stepscope.derive.graph.index import GraphIndex

_MAKERS = frozenset({"MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"})
_FIRST = frozenset({"Identity", "Cast", "Neg", "StopGradient", "RealDiv", "DivNoNan", "Sqrt", "Square", "Abs"})
"""Types whose output is zero where their first input is."""
_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
_SOLVE = "MatrixSolve"
_SURE = 0.7


def build(index: GraphIndex, shapes: FullShapes) -> tuple[WastefulWork, ...]:
    """The products and solves of the steps' graphs with diagonal matrices."""
    table = index.table
    graphs = {int(table.graph[row]) for row in table.of_types(*sorted(_MAKERS)).tolist()}
    return tuple(
        work for graph in sorted(graphs) if not index.of_data(graph) for work in _of_graph(index, shapes, graph)
    )


def _of_graph(index: GraphIndex, shapes: FullShapes, graph: int) -> Iterator[WastefulWork]:
    table = index.table
    made: dict[int, int] = {}
    """Row of a diagonal matrix -> row of the node that made it."""
    rows = table.rows_of(graph)
    for row in range(rows.start, rows.stop):
        kind, inputs = table.type_of(row), table.inputs_of(row).tolist()
        if kind in _MAKERS:
            if _main(index, row):
                made[row] = row
        elif kind == "Mul" or kind in _FIRST:
            given = inputs if kind == "Mul" else inputs[:1]
            maker = next((made[i] for i in given if i in made), None)
            if maker is not None and not index.is_gradient(row):
                made[row] = maker
        elif not index.is_gradient(row) and (part := _part(index, shapes, row, made)):
            maker = next(made[i] for i in inputs if i in made)
            yield WastefulWork(op=row, waste="diagonal", makers=(maker,), part=part, least=_SURE * part)


def _main(index: GraphIndex, row: int) -> bool:
    """Whether a node puts its input on the main diagonal: the matrix has the size of its input."""
    table = index.table
    (matrix, *_) = table.specs_of(row) or (None,)
    source = int(table.inputs_of(row)[0]) if len(table.inputs_of(row)) else -1
    (line, *_) = table.specs_of(source) if source >= 0 else (None,)
    if index.is_gradient(row) or matrix is None or line is None or not matrix.shape or not line.shape:
        return False
    return matrix.shape[-1] == matrix.shape[-2] == line.shape[-1] and len(matrix.shape) == len(line.shape) + 1


def _part(index: GraphIndex, shapes: FullShapes, row: int, made: dict[int, int]) -> float:
    """Share of an op's work on zeros; 0: none of its operands is diagonal, or their sizes are not known."""
    table = index.table
    kind, inputs = table.type_of(row), table.inputs_of(row).tolist()
    if kind == _SOLVE and inputs[0] in made:
        right = wasteful_work.matrix(index, shapes, inputs[1], int(table.slots_of(row)[1]))
        size, columns = right or (0, 0)
        whole = LU * size**3 + TRIANGLES * columns * size**2
        return 1 - columns * size / whole if whole else 0.0
    if kind not in _PRODUCTS or not any(i in made for i in inputs):
        return 0.0
    sides = [
        wasteful_work.matrix(index, shapes, *key) for key in zip(inputs, table.slots_of(row).tolist(), strict=True)
    ]
    out = wasteful_work.matrix(index, shapes, row, 0)
    if not out or not all(sides):
        return 0.0
    one, two, result = (prod(shape) for shape in (*sides, out))
    inner = sqrt(one * two / result)
    moved = BALANCE * BYTES * (one + two + result)
    needed = BALANCE * BYTES * 2 * result
    return max(0.0, 1 - needed / (2 * result * inner + moved))
