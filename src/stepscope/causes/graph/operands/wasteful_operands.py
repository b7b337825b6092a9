"""Ops whose operands need not be what they are: copies of one thing, or matrices that are mostly zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.graph.operands import (
    copied_operands,
    diagonal_operands,
    step_inputs,
    wasteful_work,
    zero_operands,
)
from stepscope.derive.graph.full_shapes import FullShapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.causes.graph.operands.wasteful_work import WastefulWork
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.program import InputSeen


def build(index: GraphIndex, samples: int, seen: Sequence[InputSeen]) -> tuple[WastefulWork, ...]:
    """Such ops of the steps' graphs, each once; ``samples``: in a step, 0: unknown; ``seen``: batches examined."""
    shapes = FullShapes(index, samples)
    inputs = step_inputs.build(index, seen)
    found: dict[int, WastefulWork] = {}
    for work in (
        *copied_operands.build(index, shapes, samples, inputs),
        *diagonal_operands.build(index, shapes),
        *zero_operands.build(index, shapes, inputs),
    ):
        found.setdefault(work.op, work)
    return tuple(wasteful_work.with_makers(index, found.values()))
