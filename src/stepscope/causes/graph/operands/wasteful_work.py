"""An op that works on operands that are wider than needed, and the part of its work that could be left out.

Work is counted as multiplications, and bytes at ``BALANCE``.

Serves wasteful_operands, for copied_operands and diagonal_operands.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.graph.operands.copied_axes import VIEWS
from stepscope.wire.replayed_ops import ELEMENTWISE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepscope.derive.graph.full_shapes import FullShapes
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.program import InputSeen

Waste = Literal["all", "solve", "product", "sum", "diagonal", "zeros", "one-hot", "multi-hot", "by-category"]
"""What is needless. For each copy again: everything; the factors of a matrix; reading a matrix; adding up. Or the zeros
around a diagonal, or nearly everywhere: of a batch, or in rows that stand for one category, or several; the last adds
up rows by category."""

BALANCE = 4.0
"""Operations in the time in which one byte is read. Source: 30 to 60 GFLOP/s and 8 to 12 GB/s of a core; the roofs that
the replay measured on two machines are in docs/benchmarks/op-limits.md."""
BYTES = 4
LU, TRIANGLES = 2 / 3, 2.0
"""Operations over the cube of a matrix's size for its factors; over its square for each right-hand side."""
MATRIX = 2
"""Rank."""


class WastefulWork(Struct, frozen=True, kw_only=True):
    """An op and what is needless in it."""

    op: int
    """Row of its node."""
    waste: Waste
    makers: tuple[int, ...]
    """Rows of the nodes that made the copies, or the diagonal matrix."""
    copies: int = 0
    """Number; 0: the graph does not show it."""
    part: float
    """Share of its work that could be left out."""
    least: float
    """Lower end of ``part``."""
    columns: int = 0
    """Of a matrix that is zero nearly everywhere."""
    used: float = 0.0
    """Share of such a matrix that is not zero."""
    seen: InputSeen | None = None
    """The batch that shows it, if the operand enters the step as it is."""
    nodes: frozenset[int] = frozenset()
    """Rows of the op, and of copies that are made for ops that need none."""


def matrix(index: GraphIndex, shapes: FullShapes, row: int, slot: int) -> tuple[int, ...]:
    """Rows and columns of the matrices of a tensor; empty if unknown."""
    specs = index.table.specs_of(row) if row >= 0 else ()
    if slot >= len(specs):
        return ()
    sizes = (shapes.of(row, slot) or specs[slot].shape or ())[-MATRIX:]
    return sizes if len(sizes) == MATRIX and min(sizes) > 0 else ()


def with_makers(index: GraphIndex, works: Iterable[WastefulWork]) -> Iterator[WastefulWork]:
    """The works, together with what is made only for ops that would do without it."""
    works = list(works)
    spared = {work.op for work in works}
    users: dict[int, list[int]] = defaultdict(list)
    for graph in {int(index.table.graph[work.op]) for work in works}:
        rows = index.table.rows_of(graph)
        for row in range(rows.start, rows.stop):
            for producer in set(index.table.inputs_of(row).tolist()):
                if not index.is_gradient(row):
                    users[producer].append(row)
    passed = {maker for work in works for maker in work.makers}
    for work in works:
        makers = () if work.waste == "all" else work.makers
        needless = {maker for maker in makers if _spared(index, maker, spared, passed, users)}
        yield replace(work, nodes=frozenset({work.op, *needless}))


def _spared(index: GraphIndex, row: int, spared: set[int], passed: set[int], users: Mapping[int, list[int]]) -> bool:
    """Whether everything that reads what a node made would do without it."""
    kinds = {user: index.table.type_of(user) for user in users[row]}
    return all(
        user in spared
        or kind in ELEMENTWISE
        or ((kind in VIEWS or user in passed) and _spared(index, user, spared, passed, users))
        for user, kind in kinds.items()
    )
