"""Cost of some graph nodes to the step where no op trace was taken: their work by shapes, relative to that of all.

A node takes a fixed time, and in addition the time of its operations or of its bytes, whichever is longer. What these
take differs from machine to machine; ratios are given for three of them, and bounds are the extremes. Nodes of loops
count for each iteration. Time of the call beyond all of that is the framework's: the lower bound is at most the time of
the nodes on the fastest machine.

It answers what ``derive.optrace.node_costs`` answers from a trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.graph import loop_turns
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.independent_loops import IDLE, WHILE
from stepscope.derive.graph.index import CALLING, NOT_FOUND
from stepscope.derive.optrace.kernels import op_work
from stepscope.derive.optrace.node_costs import OpShare
from stepscope.model.log.graph import attributes_of
from stepscope.model.session.replays import ReplayNode, Tensor, size_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from stepscope.derive.graph.independent_loops import LoopPart
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.graph.loop_turns import LoopTurns
    from stepscope.tables.records import F64

MACHINES = ((20.0, 8.0, 1_500.0), (50.0, 10.0, 2_500.0), (100.0, 12.0, 4_000.0))
"""Operations and bytes per ns, and the ns of a node, of a core: slow, usual, and with wide vectors. Source: roofs and
fixed costs that the replay measured, docs/benchmarks/op-limits.md; measured here: 3 us for a node of a loop."""
SLOWER = (4.0, 8.0, 12.0)
"""Times as long that an operation of a factorisation takes, on each of them. Measured: 9 times, of 96 x 96."""
WIDER = 2.0
"""Factor on the odds of both bounds. Measured on ten traced jobs: shares of types of ops were within it, but for ops of
each element, which the optimizer fuses."""
EARLY = 4
"""A loop that more than a count may end is assumed to make its most iterations over this, for the lower bound."""
_FREE = IDLE | CALLING | {"Identity", "IdentityN", "Reshape", "ExpandDims", "Squeeze", "Shape", "ReadVariableOp"}
"""Types without work in bytes; the optimizer drops many of them."""
_FACTORS = ("Solve", "Cholesky", "MatrixInverse", "Qr", "Svd", "SelfAdjoint", "Determinant")
_HEAVY = ("MatMul", "Conv", "Einsum", "FFT", *_FACTORS)
"""Parts of types whose work grows faster than their bytes: where the shapes of one are not known, no share is."""


class ShapeCosts:
    """The nodes of the graphs that a step runs, with the time that they are expected to take."""

    trace = None

    def __init__(
        self, index: GraphIndex, graphs: Collection[int], samples: int, call_ratio: float, call_ns: float
    ) -> None:
        """Count the work of a step.

        Args:
            index: the graphs.
            graphs: those that each step runs.
            samples: in a step; 0: unknown.
            call_ratio: share of a step in its calls.
            call_ns: time of its calls.
        """
        self.index = index
        self._call_ratio = call_ratio
        self._call_ns = max(1.0, call_ns)
        self._shapes = FullShapes(index, samples)
        self.known = True
        """Whether all that is heavy has known shapes, and each loop a known number of iterations."""
        runs = _Runs(index, graphs)
        self.known = runs.known
        rows = [r for graph in graphs for r in range(*index.table.rows_of(graph).indices(len(index.table)))]
        self._most = np.zeros(len(index.table))
        self._least = np.zeros(len(index.table))
        self._times: F64 = np.zeros((len(MACHINES), len(index.table)))
        for row in rows:
            graph = int(index.table.graph[row])
            self._most[row], self._least[row] = runs.most(graph), runs.least(graph)
            self._times[:, row] = self._time(row)
        self.nodes = len(rows)
        """Number of nodes counted."""

    def of_nodes(self, rows: Iterable[int], *, gradients: bool = False) -> OpShare:
        """Share of these nodes; with ``gradients`` also of their gradients."""
        mine = set(rows)
        if gradients:
            mine |= {row for row in np.flatnonzero(self._most).tolist() if self._gradient_of(row) in mine}
        chosen = np.array(sorted(mine), np.int64)
        found, fastest = [], 1.0
        for runs in (self._most, self._least):
            every = self._times @ runs
            part = self._times[:, chosen] @ runs[chosen]
            found += (part / np.maximum(1.0, every)).tolist()
            fastest = min(fastest, float(part.min()) / self._call_ns)
        low = self._call_ratio * min(fastest, _odds(min(found), 1 / WIDER))
        high = self._call_ratio * _odds(max(found), WIDER)
        calls = float(self._most[chosen].sum())
        return OpShare(alone=low, beside=high - low, calls_per_step=calls)

    def of_loops(self, parts: Sequence[LoopPart], fixed_ns: int) -> OpShare:
        """Share of the nodes of loops; ``beyond``: what they do themselves, which a loop's end would not save.

        ``fixed_ns``, what starting a node takes in a trace, is each machine's own here.
        """
        del fixed_ns
        rows = np.array(sorted({row for part in parts for row in part.body}), np.int64)
        share = self.of_nodes(rows)
        fixed = np.minimum(self._times[:, rows], np.array([[start] for _, _, start in MACHINES]))
        work = (self._times[:, rows] - fixed) @ self._most[rows] / np.maximum(1.0, self._times @ self._most)
        return replace(share, beyond=self._call_ratio * float(np.median(work)), turns=self.turns(rows))

    def turns(self, rows: Iterable[int]) -> float:
        """The most runs of one of these nodes in a step."""
        return float(max((self._most[row] for row in rows), default=0.0))

    def costliest(self, rows: Iterable[int]) -> list[int]:
        """Those of the given nodes that run, by their time, longest first."""
        time = self._times[1] * self._most
        return sorted((row for row in set(rows) if time[row] > 0), key=lambda row: -time[row])

    def _gradient_of(self, row: int) -> int:
        return self.index.forward_of(row) if self.index.is_gradient(row) else NOT_FOUND

    def _time(self, row: int) -> F64:
        """Time of one run of a node on each machine."""
        table = self.index.table
        kind = table.type_of(row)
        if kind in IDLE or kind in {"Identity", "IdentityN"}:
            return np.zeros(len(MACHINES))
        fixed: F64 = np.array([start for _, _, start in MACHINES])
        if kind in _FREE:
            return fixed
        inputs = [self._tensor(*key) for key in zip(table.inputs_of(row), table.slots_of(row), strict=True)]
        output = self._tensor(row, 0)
        known = [tensor for tensor in (*inputs, output) if tensor is not None]
        if len(known) < len(inputs) + 1:
            self.known = self.known and not any(part in kind for part in _HEAVY)
            return fixed
        flops = op_work.of_type(ReplayNode(type=kind, attributes=attributes_of(table, row)), known[:-1], known[-1])
        moved = sum(tensor.elements * size_of(tensor.dtype) for tensor in known)
        if "Gather" in kind or "Slice" in kind:
            moved = 2 * known[-1].elements * size_of(known[-1].dtype)
        slower = SLOWER if kind == "Lu" or any(part in kind for part in _FACTORS) else (1.0,) * len(MACHINES)
        work = [
            max(flops * factor / speed, moved / width)
            for (speed, width, _), factor in zip(MACHINES, slower, strict=True)
        ]
        busy: F64 = fixed + np.array(work)
        return busy

    def _tensor(self, row: int, slot: int) -> Tensor | None:
        specs = self.index.table.specs_of(int(row)) if row >= 0 else ()
        if slot >= len(specs) > 0:  # the agent reads the first outputs only
            if self.index.table.type_of(int(row)) not in _ALIKE:
                return None
            slot = 0
        if not specs or specs[slot].dtype in {"resource", "variant", "string"}:
            return Tensor(dtype="float32", shape=(0,)) if row >= 0 else None
        shape = self._shapes.of(int(row), int(slot))
        return Tensor(dtype=specs[slot].dtype, shape=shape) if shape is not None else None


_ALIKE = frozenset({"Unpack", "Split", "ShapeN"})
"""Ops whose outputs all have the same shape."""


def _odds(share: float, factor: float) -> float:
    return factor * share / (1 + (factor - 1) * share)


class _Runs:
    """Runs of each graph in a step."""

    def __init__(self, index: GraphIndex, graphs: Collection[int]) -> None:
        self._index = index
        self._graphs = graphs
        self._turns: dict[int, LoopTurns | None] = {}
        loops = [row for graph in graphs if (row := index.caller.get(graph, NOT_FOUND)) != NOT_FOUND]
        for row in loops:
            if index.table.type_of(row) in WHILE:
                self._turns[row] = loop_turns.build(index, row)
        self.known = None not in self._turns.values()
        """Whether the number of iterations of all loops is."""

    def most(self, graph: int) -> float:
        """Runs, if each loop makes the most of its iterations."""
        return self._count(graph, early=1)

    def least(self, graph: int) -> float:
        """Runs, if loops that something else may end do so early."""
        return self._count(graph, early=EARLY)

    def _count(self, graph: int, early: int) -> float:
        count, seen = 1.0, {graph}
        caller = self._index.caller.get(graph, NOT_FOUND)
        while caller != NOT_FOUND:
            turns = self._turns.get(caller)
            if turns is not None:
                count *= turns.most if turns.sure else max(1.0, turns.most / early)
            above = int(self._index.table.graph[caller])
            if above in seen or above not in self._graphs:
                break
            seen.add(above)
            caller = self._index.caller.get(above, NOT_FOUND)
        return count
