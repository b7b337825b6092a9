"""Shapes of tensors with the batch filled in: a graph often leaves the first dimension open.

An open first dimension is that of the op's input which has one, and of the batch where data enters the graph. Where
this does not follow, the shape stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.log.graph import UNKNOWN
from stepscope.wire.replayed_ops import ATTRIBUTES

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex

Shape = tuple[int, ...]
_ENTRIES = frozenset({"Placeholder", "IteratorGetNext", "_Arg", "OptionalGetValue", "PlaceholderWithDefault"})
_KEEPERS = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics"})
_CHANGERS = frozenset({"Transpose", "Tile", "ConcatV2", "Pack", "GatherV2", "ResourceGather", "StridedSlice", "Slice"})
"""Types whose first dimension need not be that of their first input."""
_DEEPEST = 200


class FullShapes:
    """Shapes in the graphs of one process, for a number of samples in a step; 0: unknown. Answers are cached."""

    def __init__(self, index: GraphIndex, samples: int) -> None:
        self._index = index
        self._samples = samples
        self._known: dict[tuple[int, int], Shape | None] = {}

    def of(self, row: int, slot: int, depth: int = 0) -> Shape | None:
        """The shape of an output of a node, None if it is unknown."""
        key = row, slot
        if key not in self._known:
            self._known[key] = None  # a circle knows nothing
            self._known[key] = self._look(row, slot, depth)
        return self._known[key]

    def _look(self, row: int, slot: int, depth: int) -> Shape | None:
        specs = self._index.table.specs_of(row)
        shape = specs[slot].shape if slot < len(specs) else None
        if shape is None or UNKNOWN not in shape:
            return shape
        if UNKNOWN in shape[1:] or depth > _DEEPEST:
            return None
        first = self._first(row, shape, depth + 1)
        return (first, *shape[1:]) if first > 0 else None

    def _first(self, row: int, shape: Shape, depth: int) -> int:
        """The first dimension of a node's output; 0: unknown."""
        table = self._index.table
        kind = table.type_of(row)
        if kind in _ENTRIES:
            return self._samples
        inputs = list(zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True))
        if kind == "Reshape":
            return self._reshaped(inputs, shape, depth)
        if kind in _CHANGERS or (kind not in ATTRIBUTES and kind not in _KEEPERS):
            return 0
        for producer, slot in inputs:
            specs = table.specs_of(producer) if producer >= 0 else ()
            open_shape = specs[slot].shape if slot < len(specs) else None
            if open_shape and open_shape[0] == UNKNOWN:
                full = self.of(producer, slot, depth)
                return full[0] if full else 0
        return 0

    def _reshaped(self, inputs: list[tuple[int, int]], shape: Shape, depth: int) -> int:
        full = self.of(*inputs[0], depth) if inputs and inputs[0][0] >= 0 else None
        rest = _product(shape[1:])
        return _product(full) // rest if full is not None and rest else 0


def _product(sizes: Shape) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
