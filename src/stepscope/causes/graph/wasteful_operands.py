"""Ops whose operands are copies of one thing, so that they do the same work again for each copy.

Either all operands are copies, and so is the result: computed once, it could be copied afterwards. Or one operand is
shared by all elements of the batch: the part of the work that it alone decides (the factors of a matrix that is solved,
reading the matrix of a product) could be done once. Work is counted as multiplications, and bytes at ``BALANCE``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from stepscope.causes.graph import copied_axes
from stepscope.causes.graph.axis_parts import copies
from stepscope.causes.graph.copied_axes import PRODUCTS, SOLVES, VIEWS
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import CALLING
from stepscope.model.log.graph import UNKNOWN
from stepscope.wire.replayed_ops import ELEMENTWISE, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepscope.causes.graph.axis_parts import Axes, Part
    from stepscope.causes.graph.copied_axes import Key
    from stepscope.derive.graph.index import GraphIndex

Shared = Literal["all", "solve", "product", "sum"]
"""What is done again for each copy: everything; the factors of a matrix; reading a matrix; adding up."""

BALANCE = 4.0
"""Operations in the time in which one byte is read. Source: 30 to 60 GFLOP/s and 8 to 12 GB/s of a core; the roofs that
the replay measured on two machines are in docs/benchmarks/op-limits.md."""
_BYTES = 4
_LU, _TRIANGLES = 2 / 3, 2.0
"""Operations over the cube of a matrix's size for its factors; over its square for each right-hand side."""
_FREE = VIEWS | CALLING | {"Identity", "StopGradient", "Tile", "BroadcastTo", "Fill", "Pack", "Placeholder", "NoOp"}
"""Types that move no data, or of which the copies are made."""
UNCOUNTED = 4
"""Copies that are assumed where the graph does not show their number; at least two."""
_MATRIX = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedWork:
    """An op that works on copies."""

    op: int
    """Row of its node."""
    shared: Shared
    makers: tuple[int, ...]
    """Rows of the nodes that made the copies."""
    copies: int
    """Number; 0: the graph does not show it."""
    part: float
    """Share of its work that could be left out."""
    least: float
    """Lower end of ``part``."""
    nodes: frozenset[int]
    """Rows of the op, and of copies that are made for ops that need none."""


def build(index: GraphIndex, samples: int) -> tuple[CopiedWork, ...]:
    """The ops of the steps' graphs that work on copies; ``samples``: in a step, 0: unknown."""
    known = copied_axes.build(index)
    if not known:
        return ()
    found = _Found(index, FullShapes(index, samples), known, samples)
    rows = sorted({row for row, _ in known} | found.readers())
    works = [work for row in rows if not index.is_gradient(row) for work in found.of(row)]
    return tuple(found.with_makers(works))


class _Found:
    def __init__(self, index: GraphIndex, shapes: FullShapes, known: Mapping[Key, Axes], samples: int) -> None:
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

    def of(self, row: int) -> Iterator[CopiedWork]:
        """What a node does again."""
        kind = self._table.type_of(row)
        if kind in _FREE:
            return
        made = self._counted(self._known.get((row, 0), ()))
        if made:
            yield self._work(row, "all", made, whole=1.0)
            return
        if kind in PRODUCTS:
            yield from self._product(row)
        elif kind in SOLVES:
            yield from self._solve(row)
        elif kind in REDUCTIONS:
            yield from self._sum(row)

    def with_makers(self, works: Iterable[CopiedWork]) -> Iterator[CopiedWork]:
        """The same, together with the copies made only for ops that need none."""
        works = list(works)
        spared = {work.op for work in works}
        users: dict[int, list[int]] = defaultdict(list)
        for graph in {int(self._table.graph[work.op]) for work in works}:
            rows = self._table.rows_of(graph)
            for row in range(rows.start, rows.stop):
                for producer in set(self._table.inputs_of(row).tolist()):
                    if not self._index.is_gradient(row):
                        users[producer].append(row)
        for work in works:
            needless = set() if work.shared == "all" else {m for m in work.makers if self._spared(m, spared, users)}
            yield CopiedWork(
                op=work.op,
                shared=work.shared,
                makers=work.makers,
                copies=work.copies,
                part=work.part,
                least=work.least,
                nodes=frozenset({work.op, *needless}),
            )

    def _spared(self, row: int, spared: set[int], users: Mapping[int, list[int]]) -> bool:
        """Whether everything that reads a node's copies would do without them."""
        return all(
            user in spared
            or self._table.type_of(user) in ELEMENTWISE
            or (self._table.type_of(user) in VIEWS and self._spared(user, spared, users))
            for user in users[row]
        )

    def _inputs(self, row: int) -> list[Key]:
        return list(zip(self._table.inputs_of(row).tolist(), self._table.slots_of(row).tolist(), strict=True))

    def _counted(self, axes: Axes) -> tuple[Part, ...]:
        """The copies, without those that a gradient's node made, or that are made once."""
        return tuple(p for p in copies(axes) if not self._index.is_gradient(p.maker) and p.size not in {0, 1})

    def _number(self, parts: Iterable[Part]) -> int:
        """Of copies; 0: unknown."""
        sizes = [self._samples if part.size == UNKNOWN else part.size for part in parts]
        return prod(sizes)

    def _work(self, row: int, shared: Shared, made: tuple[Part, ...], whole: float) -> CopiedWork:
        """``whole``: share of the op's work that the copies have in common."""
        number = self._number(made)
        part = whole * (1 - 1 / (number or UNCOUNTED))
        makers = tuple(dict.fromkeys(p.maker for p in made))
        sure = 0.9 if shared == "all" else 0.7
        least = sure * part if number else whole / 4
        return CopiedWork(
            op=row, shared=shared, makers=makers, copies=number, part=part, least=least, nodes=frozenset({row})
        )

    def _shared(self, row: int, position: int) -> tuple[Part, ...]:
        """Copies along the batch of an operand, whose result is none."""
        axes = self._known.get(self._inputs(row)[position], ())
        return self._counted(axes[:-_MATRIX])

    def _matrix(self, key: Key) -> tuple[int, ...]:
        """Rows and columns of the matrices of a tensor; empty if unknown."""
        specs = self._table.specs_of(key[0])
        shape = self._shapes.of(*key) or (specs[key[1]].shape if key[1] < len(specs) else None) or ()
        sizes = shape[-_MATRIX:]
        return sizes if len(sizes) == _MATRIX and min(sizes) > 0 else ()

    def _product(self, row: int) -> Iterator[CopiedWork]:
        out = self._matrix((row, 0))
        for position in (0, 1):
            made = self._shared(row, position)
            shape = self._matrix(self._inputs(row)[position])
            other = self._matrix(self._inputs(row)[1 - position])
            if not made or not out or not shape or not other:
                continue
            matrix, second, result = prod(shape), prod(other), prod(out)
            inner = (matrix * second / result) ** 0.5
            work = 2 * result * inner + BALANCE * _BYTES * (matrix + second + result)
            yield self._work(row, "product", made, whole=BALANCE * _BYTES * matrix / work)

    def _solve(self, row: int) -> Iterator[CopiedWork]:
        made = self._shared(row, 0)
        shape, right = (self._matrix(self._inputs(row)[i]) for i in (0, 1))
        if not made or not shape or not right:
            return
        size, columns = shape[-1], right[-1]
        if self._table.type_of(row) == "MatrixTriangularSolve":
            read = BALANCE * _BYTES * size**2 / 2
            whole = read / (read + columns * size**2)
        else:
            whole = _LU * size / (_LU * size + _TRIANGLES * columns)
        yield self._work(row, "solve", made, whole=whole)

    def _sum(self, row: int) -> Iterator[CopiedWork]:
        """Sums over copies: one of them, times their number."""
        axes = self._known.get(self._inputs(row)[0], ())
        left = {part.maker for part in copies(self._known.get((row, 0), ()))}
        made = tuple(part for part in self._counted(axes) if part.maker not in left)
        if made:
            yield self._work(row, "sum", made, whole=1.0)
