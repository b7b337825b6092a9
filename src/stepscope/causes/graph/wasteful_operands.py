"""Ops whose operands need not be what they are: copies of one thing, or a matrix of zeros around its diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.graph import copied_operands, diagonal_operands, wasteful_work
from stepscope.derive.graph.full_shapes import FullShapes

if TYPE_CHECKING:
    from stepscope.causes.graph.wasteful_work import WastefulWork
    from stepscope.derive.graph.index import GraphIndex


def build(index: GraphIndex, samples: int) -> tuple[WastefulWork, ...]:
    """Such ops of the steps' graphs, each once; ``samples``: in a step, 0: unknown."""
    shapes = FullShapes(index, samples)
    copied = copied_operands.build(index, shapes, samples)
    known = {work.op for work in copied}
    diagonal = [work for work in diagonal_operands.build(index, shapes) if work.op not in known]
    return tuple(wasteful_work.with_makers(index, [*copied, *diagonal]))
