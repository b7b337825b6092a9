"""Ops whose operands are copies of one thing, so that they do the same work again for each copy.

Either all operands are copies, and so is the result: computed once, it could be copied afterwards. Or one operand is
shared by all elements of the batch: the part of the work that it alone decides (the factors of a matrix that is solved,
reading the matrix of a product) could be done once.

Serves wasteful_operands.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING

from stepscope.causes.graph.operands import copied_axes, wasteful_work
from stepscope.causes.graph.operands.axis_parts import copies
from stepscope.causes.graph.operands.copied_axes import BATCHED, SOLVES, VIEWS
from stepscope.causes.graph.operands.wasteful_work import BALANCE, BYTES, LU, MATRIX, TRIANGLES, WastefulWork
from stepscope.derive.graph.index import CALLING, PRODUCTS
from stepscope.model.log.graph import UNKNOWN
from stepscope.wire.replayed_ops import REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepscope.causes.graph.operands.axis_parts import Axes, AxisPart, Key
    from stepscope.causes.graph.operands.step_inputs import StepInput
    from stepscope.causes.graph.operands.wasteful_work import Waste
    from stepscope.derive.graph.full_shapes import FullShapes
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.program import InputSeen

_FREE = VIEWS | CALLING | {"Identity", "StopGradient", "Tile", "BroadcastTo", "Fill", "Pack", "Placeholder", "NoOp"}
"""Types that move no data, or of which the copies are made."""
_HEAVY = PRODUCTS | SOLVES | {"Conv2D", "Conv3D", "DepthwiseConv2dNative"}
"""Types without which equal rows of a batch are no loss: labels have few values."""
UNCOUNTED = 4
"""Copies that are assumed where the graph does not show their number; at least two."""


def build(
    index: GraphIndex, shapes: FullShapes, samples: int, inputs: Mapping[Key, StepInput]
) -> tuple[WastefulWork, ...]:
    """The ops of the steps' graphs that work on copies; ``samples``: in a step, 0: unknown."""
    known = copied_axes.build(index, inputs)
    if not known:
        return ()
    given = {row: one.seen for (row, _), one in reversed([*inputs.items()]) if one.copies > 1}
    found = _Found(index, shapes, known, samples, given)
    rows = sorted({row for row, _ in known} | found.readers())
    works = [work for row in rows if not index.is_gradient(row) for work in found.of(row)]
    heavy = {work.seen for work in works if work.seen is not None and index.table.type_of(work.op) in _HEAVY}
    return tuple(work for work in works if work.seen is None or work.seen in heavy)


class _Found:
    def __init__(
        self,
        index: GraphIndex,
        shapes: FullShapes,
        known: Mapping[Key, Axes],
        samples: int,
        given: Mapping[int, InputSeen],
    ) -> None:
        self._given = given
        self._index = index
        self._table = index.table
        self._shapes = shapes
        self._known = known
        self._samples = samples

    def readers(self) -> set[int]:
        """Rows of the nodes that take copies."""
        return {
            row
            for graph in {int(self._table.graph[row]) for row, _ in self._known}
            for row in range(self._table.rows_of(graph).start, self._table.rows_of(graph).stop)
            if any(key in self._known for key in self._inputs(row))
        }

    def of(self, row: int) -> Iterator[WastefulWork]:
        """What a node does again."""
        kind = self._table.type_of(row)
        if kind in _FREE:
            return
        made = self._counted(self._known.get((row, 0), ()))
        if made:
            yield self._work(row, "all", made, whole=1.0)
            return
        if kind in BATCHED:
            yield from self._product(row)
        elif kind in SOLVES:
            yield from self._solve(row)
        elif kind in REDUCTIONS:
            yield from self._sum(row)

    def _inputs(self, row: int) -> list[Key]:
        return list(zip(self._table.inputs_of(row).tolist(), self._table.slots_of(row).tolist(), strict=True))

    def _counted(self, axes: Axes) -> tuple[AxisPart, ...]:
        """The copies, without those that a gradient's node made, or that are made once."""
        return tuple(p for p in copies(axes) if not self._index.is_gradient(p.maker) and p.size not in {0, 1})

    def _number(self, parts: Iterable[AxisPart]) -> int:
        """Of copies; 0: unknown."""
        sizes = [self._samples if part.size == UNKNOWN else part.size for part in parts]
        return prod(sizes)

    def _work(self, row: int, waste: Waste, made: tuple[AxisPart, ...], whole: float) -> WastefulWork:
        """``whole``: share of the op's work that the copies have in common."""
        number = self._number(made)
        part = whole * (1 - 1 / (number or UNCOUNTED))
        makers = tuple(dict.fromkeys(p.maker for p in made))
        sure = 0.9 if waste == "all" else 0.7
        least = sure * part if number else whole / 4
        seen = next((self._given[maker] for maker in makers if maker in self._given), None)
        return WastefulWork(op=row, waste=waste, makers=makers, copies=number, part=part, least=least, seen=seen)

    def _shared(self, row: int, position: int) -> tuple[AxisPart, ...]:
        """Copies along the batch of an operand, whose result is none."""
        axes = self._known.get(self._inputs(row)[position], ())
        return self._counted(axes[:-MATRIX])

    def _matrix(self, row: int, slot: int) -> tuple[int, ...]:
        return wasteful_work.matrix(self._index, self._shapes, row, slot)

    def _product(self, row: int) -> Iterator[WastefulWork]:
        out = self._matrix(row, 0)
        for position in (0, 1):
            made = self._shared(row, position)
            shape = self._matrix(*self._inputs(row)[position])
            other = self._matrix(*self._inputs(row)[1 - position])
            if not made or not out or not shape or not other:
                continue
            own, second, result = prod(shape), prod(other), prod(out)
            inner = sqrt(own * second / result)
            work = 2 * result * inner + BALANCE * BYTES * (own + second + result)
            yield self._work(row, "product", made, whole=BALANCE * BYTES * own / work)

    def _solve(self, row: int) -> Iterator[WastefulWork]:
        made = self._shared(row, 0)
        shape, right = (self._matrix(*self._inputs(row)[i]) for i in (0, 1))
        if not made or not shape or not right:
            return
        size, columns = shape[-1], right[-1]
        if self._table.type_of(row) == "MatrixTriangularSolve":
            read = BALANCE * BYTES * size**2 / 2
            whole = read / (read + columns * size**2)
        else:
            whole = LU * size / (LU * size + TRIANGLES * columns)
        yield self._work(row, "solve", made, whole=whole)

    def _sum(self, row: int) -> Iterator[WastefulWork]:
        """Sums over copies: one of them, times their number."""
        axes = self._known.get(self._inputs(row)[0], ())
        left = {part.maker for part in copies(self._known.get((row, 0), ()))}
        made = tuple(part for part in self._counted(axes) if part.maker not in left)
        if made:
            yield self._work(row, "sum", made, whole=1.0)
