"""Jacobians of all samples' results by all samples' inputs, of which the blocks on the diagonal are used.

``tape.jacobian`` of N samples computes N x N blocks. Where a sample's result depends on its own input alone, all but N
of them are zero: ``tape.batch_jacobian`` makes these N.

Serves partly_used_results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.graph.partly_used_results import PASSING, PartlyUsed
from stepscope.derive.graph.full_shapes import FullShapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex

_TAKING = frozenset({"Einsum", "Sum", "GatherNd", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"})
"""Types that take the diagonal blocks of a Jacobian: of its other blocks, which are zero, a sum takes nothing."""
_VECTORISED = "/pfor/"
"""In the names of ops that TensorFlow made of one op to run it for many rows at once, as a Jacobian does."""
_LONGEST = 8
"""Ops that reshape a Jacobian, at most."""


def build(index: GraphIndex, samples: int, most: float, min_elements: int) -> tuple[PartlyUsed, ...]:
    """The Jacobians of the steps' graphs.

    Args:
        index: the graphs.
        samples: samples in a step, which graphs often leave open; 0: unknown.
        most: largest share of the elements that is used.
        min_elements: of the Jacobian.
    """
    return tuple(_found(index, FullShapes(index, samples), most, min_elements))


def _found(index: GraphIndex, shapes: FullShapes, most: float, min_elements: int) -> Iterator[PartlyUsed]:
    table = index.table
    for row in table.of_types(*sorted(_TAKING)).tolist():
        (source, *_) = table.inputs_of(row).tolist() or (-1,)
        if source < 0 or index.is_gradient(row) or index.of_data(int(table.graph[row])):
            continue
        whole, part = shapes.of(source, 0), shapes.of(row, 0)
        samples = _samples(whole, part) if whole and part is not None else 0
        last = _vectorised(index, source) if samples else -1
        if whole is None or last < 0 or 1 / samples > most or _product(whole) < min_elements:
            continue
        nodes = _made_with(index, last)
        yield PartlyUsed(selecting=(row,), nodes=nodes, shape=tuple(whole), used_ratio=1 / samples, jacobian_of=samples)


def _samples(whole: tuple[int, ...], part: tuple[int, ...]) -> int:
    """Size that a shape has twice, of which the other one has lost one axis; 0 if it is none such."""
    for at, size in enumerate(whole):
        if size > 1 and size in whole[:at] and whole[:at] + whole[at + 1 :] == part:
            return size
    return 0


def _vectorised(index: GraphIndex, row: int) -> int:
    """The node of a vectorised gradient whose result another one is, reshaped; -1 if it is not one."""
    table = index.table
    for _ in range(_LONGEST):
        if row < 0:
            break
        if index.is_gradient(row):
            return row if _VECTORISED in table.name_of(row) else -1
        if table.type_of(row) not in PASSING or not len(table.inputs_of(row)):
            break
        row = int(table.inputs_of(row)[0])
    return -1


def _made_with(index: GraphIndex, last: int) -> tuple[int, ...]:
    """The vectorised ops made by the line that made one of them, that one first."""
    table = index.table
    graph = int(table.graph[last])
    rows = table.rows_of(graph)
    line, _ = index.maker_of(last)
    same = (
        row
        for row in range(rows.start, rows.stop)
        if row != last and _VECTORISED in table.name_of(row) and index.maker_of(row)[0] == line
    )
    return (last, *same)


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
