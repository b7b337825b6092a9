"""Memory that one call of a graph needs, by the shapes of its nodes: what does not grow with the batch, and what does.

The nodes are followed in the order in which they were made, which is that of the forward pass and then of the
gradients. A tensor lives from its node to its last use. Ops that only rename a tensor share its memory, and ops of each
element write into an input that is needed no more, as TensorFlow's kernels do. A called graph needs its own peak
while it runs. Variables are not counted, nor the work space of kernels: the result is a lower bound of what the
allocator has to give.

Source: TensorFlow, ``forward_input_or_allocate_output`` of OpKernelContext; core/common_runtime/executor.cc frees a
tensor when its last consumer has taken it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import CALLING
from stepscope.model.log.graph import UNKNOWN
from stepscope.model.session.replays import size_of
from stepscope.wire.replayed_ops import ELEMENTWISE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.graph.index import GraphIndex

_ALIASES = frozenset(
    {
        *("Identity", "IdentityN", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient", "Snapshot"),
        *("CheckNumerics", "PlaceholderWithDefault", "EnsureShape", "Bitcast"),
    }
)
"""Types whose outputs are the memory of their first input."""
_NOTHING = frozenset({"ReadVariableOp", "Placeholder", "_Arg", "VarHandleOp", "Const", "NoOp", "_Retval", "Shape"})
"""Types that allocate nothing of their own: variables, arguments, constants."""
_TURNED = frozenset({"Einsum"})
"""Types whose kernels copy their inputs and their output to turn axes. Source: core/kernels/linalg/einsum_op_impl.h."""
AT_ONCE = 2
"""Such ops that run at the same time: the gradients of both operands are ready at once."""
_LEAST = 1024
"""Bytes below which a tensor is not followed."""
_DEEPEST = 12


class LiveTensor(Struct, frozen=True, kw_only=True):
    """A tensor that lives at the peak."""

    row: int
    """Its node."""
    bytes: float
    grows: bool
    """Whether it grows with the batch."""


class StepMemory(Struct, frozen=True, kw_only=True):
    """What a call of a graph needs at its peak, beyond what lives before it. Bytes."""

    graph: int
    samples: int
    fixed: float
    """Part that does not grow with the batch: gradients of variables, work on them."""
    grown: float
    """Part that grows with the batch, at ``samples``."""
    tensors: tuple[LiveTensor, ...]
    """What lives at the peak, the largest first."""

    @property
    def total(self) -> float:
        """Bytes at ``samples``."""
        return self.fixed + self.grown

    @property
    def per_sample(self) -> float:
        """Bytes that one more sample needs."""
        return self.grown / self.samples if self.samples else 0.0


class _Buffer(Struct):
    row: int
    bytes: float
    grows: bool
    uses: int


class _Peak(Struct, frozen=True):
    fixed: float = 0.0
    grown: float = 0.0
    live: tuple[LiveTensor, ...] = ()

    @property
    def total(self) -> float:
        return self.fixed + self.grown


class StepMemories:
    """Memory of the graphs of one process, for calls with ``samples`` samples. Answers are cached."""

    def __init__(self, index: GraphIndex, samples: int) -> None:
        """``samples``: size of the first dimension that the graphs leave open; 0: unknown, nothing is computed."""
        self._index = index
        self._samples = samples
        self._shapes = FullShapes(index, samples)
        self._known: dict[int, _Peak] = {}
        self._variables = {
            spec.partition("[")[2] for graph in index.graphs.values() for _, _, spec, _ in graph.variables
        }

    def of(self, graph: int) -> StepMemory:
        """What a call of ``graph`` needs."""
        peak = self._peak(graph, 0)
        tensors = tuple(sorted(peak.live, key=lambda t: -t.bytes))
        return StepMemory(graph=graph, samples=self._samples, fixed=peak.fixed, grown=peak.grown, tensors=tensors[:100])

    def _peak(self, graph: int, depth: int) -> _Peak:
        if graph not in self._known:
            self._known[graph] = _Peak()  # a circle needs nothing
            self._known[graph] = self._follow(graph, depth)
        return self._known[graph]

    def _follow(self, graph: int, depth: int) -> _Peak:
        index, table = self._index, self._index.table
        rows = table.rows_of(graph)
        uses = _uses(index, rows)
        buffers: dict[tuple[int, int], _Buffer] = {}
        live: dict[int, _Buffer] = {}
        size = {True: 0.0, False: 0.0}
        best = _Peak()
        for row in range(rows.start, rows.stop):
            kind = table.type_of(row)
            inputs = list(zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True))
            inner = _Peak()
            if kind in CALLING and depth < _DEEPEST:
                peaks = [self._peak(called, depth + 1) for _, called in index.called_by(row)]
                inner = max(peaks, key=lambda p: p.total, default=_Peak())
            taken = [buffers[key] for key in inputs if key in buffers]
            for slot, buffer in self._outputs(row, kind, taken):
                count = uses.get((row, slot), 0)
                if buffer.row == row and id(buffer) not in live:
                    size[buffer.grows] += buffer.bytes
                    live[id(buffer)] = buffer
                buffer.uses += count
                buffers[row, slot] = buffer
            made = [buffers[row, slot] for slot in range(8) if (row, slot) in buffers]
            work = [AT_ONCE * b.bytes * b.grows for b in (*taken, *made)] if kind in _TURNED else []
            total = size[True] + size[False] + inner.total + sum(work)
            if total > best.total:
                grown = size[True] + inner.grown + sum(work)
                best = _Peak(size[False] + inner.fixed, grown, (*_listed(live), *inner.live))
            for buffer in taken:
                buffer.uses -= 1
            for buffer in (*taken, *made):
                if buffer.uses <= 0 and live.pop(id(buffer), None) is not None:
                    size[buffer.grows] -= buffer.bytes
        return best

    def _outputs(self, row: int, kind: str, taken: Sequence[_Buffer]) -> list[tuple[int, _Buffer]]:
        """(slot, memory) of each large output of a node."""
        if kind in _ALIASES and taken:
            return [(0, taken[0])]
        if kind in _NOTHING:
            return []
        found = []
        for slot, spec in enumerate(self._index.table.specs_of(row)):
            bytes_, grows = self._bytes(row, slot, spec.dtype, spec.shape)
            if bytes_ < _LEAST:
                continue
            again = [b for b in taken if b.uses == 1 and b.bytes == bytes_] if kind in ELEMENTWISE else []
            found.append((slot, again[0] if again else _Buffer(row, bytes_, grows, 0)))
        return found

    def _bytes(self, row: int, slot: int, dtype: str, shape: tuple[int, ...] | None) -> tuple[float, bool]:
        """Size of an output, and whether it grows with the batch; 0 if the size is unknown."""
        if shape is None or dtype in {"resource", "variant", "string"}:
            return 0.0, False
        grows = bool(shape) and (shape[0] == UNKNOWN or self._like_batch(shape))
        if UNKNOWN in shape:
            full = self._shapes.of(row, slot)
            if full is None and shape[0] == UNKNOWN and UNKNOWN not in shape[1:]:
                full = (self._samples, *shape[1:])
            if full is None:
                return 0.0, False
            shape = full
        count = 1
        for length in shape:
            count *= length
        return float(count * size_of(dtype)), grows

    def _like_batch(self, shape: tuple[int, ...]) -> bool:
        """Whether a known shape begins with the batch, alone or times something, and is none of a variable's."""
        if self._samples <= 1 or shape[0] <= 0 or shape[0] % self._samples:  # 1 divides everything
            return False
        return ",".join(map(str, shape)) + "]" not in self._variables


def _listed(live: Mapping[int, _Buffer]) -> tuple[LiveTensor, ...]:
    return tuple(LiveTensor(row=b.row, bytes=b.bytes, grows=b.grows) for b in live.values())


def _uses(index: GraphIndex, rows: slice) -> dict[tuple[int, int], int]:
    """How many inputs take each output."""
    table, found = index.table, dict[tuple[int, int], int]()
    for row in range(rows.start, rows.stop):
        for producer, slot in zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True):
            found[producer, slot] = found.get((producer, slot), 0) + 1
    return found
