"""What the examined batches show of the tensors that enter the steps' graphs: zeros, and rows that are the same.

A tensor is that of a batch by the function whose argument it is, by its name (sessions), or by its place in the batch
and its shape without the first dimension; that of an array of all samples by the shape alone. Of several batches the
one counts that shows least: the fewest zeros, the most rows that differ.

Serves wasteful_operands, for copied_axes and zero_operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.independent_loops import ARGUMENT
from stepscope.model.log.graph import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.causes.graph.operands.axis_parts import Key
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.graph import TensorSpec
    from stepscope.model.log.program import InputSeen

_ITERATOR = frozenset({"IteratorGetNext", "OptionalGetValue"})
MIN_COPIES = 2
"""Equal rows for each that differs, below which a batch has no copies."""


class StepInput(Struct, frozen=True, kw_only=True):
    """A tensor that enters a graph, as batches of it were."""

    shape: tuple[int, ...]
    """Of a batch without its first dimension."""
    zeros_ratio: float
    copies: int = 1
    """Rows that are the same, for each row that differs from them."""
    every: bool = False
    """Whether all rows of a batch are the same."""
    block: bool = False
    """Whether copies follow each other."""
    distinct: int = 0
    """Rows that are repeated in order, again and again; 0: in no order."""
    seen: InputSeen
    """The batch with the fewest zeros."""


def build(index: GraphIndex, seen: Sequence[InputSeen]) -> Mapping[Key, StepInput]:
    """The tensors that enter the graphs of steps, those of which batches were examined."""
    found = {}
    for key, position, name, spec in entering(index) if seen else ():
        of = index.definition_of(int(index.table.graph[key[0]]))
        fits = [one for one in seen if _fits(one, name, spec)]
        fits = [one for one in fits if one.of and one.of == of] or [one for one in fits if not one.of]
        here = [one for one in fits if one.name or one.position == position]
        fits = here or [one for one in fits if not one.batch]
        if fits:
            found[key] = _least(fits)
    return found


def _least(fits: Sequence[InputSeen]) -> StepInput:
    fewest = min(fits, key=lambda one: one.zeros_ratio)
    batches = [one for one in fits if one.batch]
    shape, zeros = fewest.shape[1:], fewest.zeros_ratio
    copies = min((one.block or one.rows // one.distinct for one in batches if one.distinct), default=1)
    if copies < MIN_COPIES:
        return StepInput(shape=shape, zeros_ratio=zeros, seen=fewest)
    tiles = {one.distinct if one.tiled else 0 for one in batches}
    return StepInput(
        shape=shape,
        zeros_ratio=zeros,
        copies=copies,
        every=all(one.distinct == 1 for one in batches),
        block=all(one.block for one in batches),
        distinct=tiles.pop() if len(tiles) == 1 else 0,
        seen=fewest,
    )


def entering(index: GraphIndex) -> Iterator[tuple[Key, int, str, TensorSpec]]:
    """(key, position, name, type and shape) of what enters the graphs that Python runs."""
    table = index.table
    for graph, read in index.graphs.items():
        if index.of_data(graph) or read.role == "gradient":
            continue
        held = {node for node, *_ in read.variables} | set(read.constants)
        rows = table.rows_of(graph)
        position = 0
        for row in range(rows.start, rows.stop):
            kind = table.type_of(row)
            if kind == ARGUMENT and graph not in index.caller and int(table.node[row]) not in held:
                for spec in table.specs_of(row)[:1]:
                    yield (row, 0), position, table.name_of(row), spec
                position += 1
            elif kind in _ITERATOR:
                for slot, spec in enumerate(table.specs_of(row)):
                    yield (row, slot), slot, "", spec


def _fits(one: InputSeen, name: str, spec: TensorSpec) -> bool:
    if spec.shape is None or len(spec.shape) != len(one.shape):
        return False
    if one.name and one.name.partition(":")[0] != name:
        return False
    return all(size in {UNKNOWN, own} for size, own in zip(spec.shape[1:], one.shape[1:], strict=True))
