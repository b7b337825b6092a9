"""What the steps' graphs read of the tensors that are handed to them: all, a slice, or nothing.

A tensor is followed through what only passes it on, and into the functions that are called with it, up to the ops that
take it. What an op selects, it reads in part; any other op reads all of it; a tensor without takers is not read. What a
function returns is read.

Serves unread_input.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import partly_used_results
from stepscope.causes.graph.operands import inward, step_inputs
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.independent_loops import ARGUMENT
from stepscope.derive.graph.index import CALLING
from stepscope.model.log.graph import ITEM_BYTES, UNKNOWN
from stepscope.wire.replayed_ops import MAX_INPUTS, MAX_OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from stepscope.causes.graph.operands.axis_parts import Key
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.graph import TensorSpec

SPLITTING = {"Split": 1, "SplitV": 0, "Unpack": 0}
"""Types that give the parts of an input as several outputs, with the place of that input."""
_PASSING = partly_used_results.PASSING | {"Cast", "IdentityN"}
_DEEPEST = 50
_WHOLE = 1 - 1e-9
"""Sum of shares that is all: columns of a table add up to it but for rounding."""


class ReadPart(Struct, frozen=True, kw_only=True):
    """A tensor of a batch, and what is read of it by the graph that reads most."""

    dtype: str
    shape: tuple[int, ...]
    ratio: float
    """Share of its elements that is read, at most."""
    selecting: tuple[int, ...] = ()
    """Rows of the nodes that read a part of it."""

    @property
    def bytes(self) -> int:
        """Its size."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]


def build(index: GraphIndex, samples: int, steps: Collection[int]) -> tuple[ReadPart, ...]:
    """Tensors with known sizes that enter the graphs of steps from Python or from an iterator.

    Args:
        index: the graphs.
        samples: samples in a step, which graphs often leave open; 0: unknown.
        steps: the graphs that steps run.
    """
    reader = _Reader(index, samples)
    found: dict[tuple[int, TensorSpec], ReadPart] = {}
    for key, position, _, spec in step_inputs.entering(index):
        graph = int(index.table.graph[key[0]])
        shape = reader.shapes.of(*key)
        if graph not in steps or shape is None or UNKNOWN in shape or spec.dtype not in ITEM_BYTES:
            continue
        selecting: list[int] = []
        ratio = reader.ratio(key, selecting) if index.graphs[graph].state == "read" else 1.0
        part = ReadPart(dtype=spec.dtype, shape=shape, ratio=ratio, selecting=tuple(selecting))
        before = found.get((position, spec))
        if before is None or before.ratio < ratio:
            found[position, spec] = part
    return tuple(found.values())


class _Reader:
    """Follows tensors through the graphs of one process."""

    def __init__(self, index: GraphIndex, samples: int) -> None:
        self.shapes = FullShapes(index, samples)
        self._index = index
        self._takers: dict[int, dict[Key, list[int]]] = {}
        self._cut: dict[int, bool] = {}

    def ratio(self, key: Key, selecting: list[int], depth: int = 0) -> float:
        """Share of a tensor's elements that is read, at most; appends the rows of the nodes that select."""
        takers = self._takers_of(key)
        if depth > _DEEPEST or (not takers and self._is_cut(int(self._index.table.graph[key[0]]))):
            return 1.0
        ratio = sum(self._taken(key, taker, selecting, depth) for taker in takers)
        return ratio if ratio < _WHOLE else 1.0

    def _takers_of(self, key: Key) -> list[int]:
        table = self._index.table
        graph = int(table.graph[key[0]])
        if graph not in self._takers:
            found: dict[Key, list[int]] = defaultdict(list)
            rows = table.rows_of(graph)
            for row in range(rows.start, rows.stop):
                pairs = zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True)
                for taken in set(pairs):
                    found[taken].append(row)
            self._takers[graph] = found
        return self._takers[graph].get(key, [])

    def _taken(self, key: Key, taker: int, selecting: list[int], depth: int) -> float:
        table = self._index.table
        kind = table.type_of(taker)
        inputs = list(zip(table.inputs_of(taker).tolist(), table.slots_of(taker).tolist(), strict=True))
        if kind in partly_used_results.ASIDE:
            return 0.0
        if kind in CALLING:
            return self._inside(key, taker, inputs, selecting, depth)
        if kind in _PASSING:
            slot = inputs.index(key) if kind == "IdentityN" else 0
            return self._passed((taker, slot), selecting, depth)
        if kind in SPLITTING and inputs.index(key) == SPLITTING[kind]:
            return self._split(taker, selecting, depth)
        part = self._part(key, taker) if kind in partly_used_results.SELECTING and inputs.index(key) == 0 else None
        if part is None or inputs.count(key) > 1:
            return 1.0
        selecting.append(taker)
        return part

    def _split(self, taker: int, selecting: list[int], depth: int) -> float:
        """What is read of the parts that a node gives."""
        outputs = len(self._index.table.specs_of(taker))
        if not 0 < outputs < MAX_OUTPUTS:
            return 1.0
        parts = [self.ratio((taker, slot), [], depth + 1) for slot in range(outputs)]
        if sum(parts) < outputs:
            selecting.append(taker)
        return sum(parts) / outputs

    def _part(self, key: Key, taker: int) -> float | None:
        """Share that a node selects of its first input: by the graph's shapes, or with the batch filled in."""
        specs = self._index.table.specs_of(key[0])
        whole = specs[key[1]].shape if key[1] < len(specs) else None
        (part, *_) = [spec.shape for spec in self._index.table.specs_of(taker)] or [None]
        ratio = partly_used_results.part_of(whole, part)
        return ratio if ratio is not None else partly_used_results.part_of(self.shapes.of(*key), part)

    def _is_cut(self, graph: int) -> bool:
        """Whether a node of a graph may take a tensor without it being known: some have more inputs than are kept.

        What a call takes beyond them is mostly variables.
        """
        if graph not in self._cut:
            index = self._index
            rows = index.table.rows_of(graph)
            long = [row for row in range(rows.start, rows.stop) if len(index.table.inputs_of(row)) == MAX_INPUTS]
            self._cut[graph] = not all(self._takes_variables(row) for row in long)
        return self._cut[graph]

    def _takes_variables(self, row: int) -> bool:
        """Whether all inputs beyond those that are kept are variables and other things that a function captured."""
        index = self._index
        if index.table.type_of(row) not in CALLING:
            return False
        for _, graph in index.called_by(row):
            rows = index.table.rows_of(graph)
            arguments = [r for r in range(rows.start, rows.stop) if index.table.type_of(r) == ARGUMENT]
            specs = [spec for r in arguments[MAX_INPUTS:] for spec in index.table.specs_of(r)]
            if any(spec.dtype in ITEM_BYTES for spec in specs):
                return False
        return True

    def _passed(self, key: Key, selecting: list[int], depth: int) -> float:
        """What is read of what a node passes on: without takers it is what the function returns."""
        return self.ratio(key, selecting, depth + 1) if self._takers_of(key) else 1.0

    def _inside(self, key: Key, taker: int, inputs: list[Key], selecting: list[int], depth: int) -> float:
        """What the functions read that a node calls: of several the sum, as of a loop's condition and its body."""
        ratio, known = 0.0, False
        for graph, pairs in inward.arguments_of(self._index, taker):
            mine = [argument for argument, given in pairs if given == key]
            if len(mine) != inputs.count(key) or self._index.graphs[graph].state != "read":
                return 1.0
            known = True
            ratio += sum(self.ratio(argument, selecting, depth + 1) for argument in mine)
        return ratio if known else 1.0
