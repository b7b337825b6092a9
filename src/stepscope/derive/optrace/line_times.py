"""Op time by source line, layer and op type: an op trace joined to the nodes of the graphs that ran.

The time of a gradient counts where its forward op counts, and is also given separately. An op made by library code
inside a function, with no user code on the way, counts on the line that called the function.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace import compiled_ops, op_times
from stepscope.tables.optrace import Category, LineKind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.compiled_ops import CompiledOp
    from stepscope.model.log.graph import Layer
    from stepscope.tables.optrace import OpTrace

T = TypeVar("T")
COUNTED = frozenset({Category.OP, Category.COLLECTIVE, Category.KERNEL, Category.COPY})
"""Categories that make up op time: stages of tf.data pipelines are no ops of a graph."""
CAPTURED = "InstantiatedCapturedFunction::"
"""Name of the events around functions that tf.data calls."""


class Line(NamedTuple):
    """A line of user code."""

    file: str
    function: str
    line: int


class OpTime(Struct, frozen=True, kw_only=True):
    """An op of the trace and its origin. Times in picoseconds, of the whole trace."""

    name: str
    type: str
    """Type of the op that ran: the optimizer may have replaced the node's own."""
    plane: str
    """Plane of the trace on which it ran."""
    calls: int
    self_ps: int
    row: int
    """Row in the table of nodes; -1: no node was found."""
    gradient: bool
    of: int
    """Row of the forward node if this is its gradient; else, or if that was not found, ``row``."""
    line: Line | None
    layer: Layer | None
    place: Line | None
    """``line``, else the line that built ``layer``."""
    shape: str = ""
    """Shape of the result, if a compiled program says it."""
    flops: float = 0.0
    """Operations of one run, if a compiled program says them; 0: none, or not known."""

    @property
    def named(self) -> bool:
        """Whether its maker is known: a line, a layer, an optimizer or a metric."""
        return self.place is not None or self.layer is not None


class Share(Struct, frozen=True, kw_only=True):
    """Op time of one line, layer or type."""

    line: Line | None
    layer: Layer | None
    type: str
    calls: int
    self_ps: int
    gradient_ps: int
    """The part spent in gradients."""
    ratio: float
    """Share of all op time."""


class OpLines(Struct, frozen=True, kw_only=True):
    """The ops of a trace, longest self time first."""

    ops: tuple[OpTime, ...]
    total_ps: int
    joined_ps: int
    """Time of ops whose node was found."""

    @property
    def joined_ratio(self) -> float:
        """Share of op time joined to nodes."""
        return self.joined_ps / self.total_ps if self.total_ps else 0.0

    @property
    def named_ratio(self) -> float:
        """Share of op time with a known maker: a node made by no known line or layer is only a name."""
        return sum(op.self_ps for op in self.ops if op.named) / self.total_ps if self.total_ps else 0.0

    def by_line(self) -> tuple[Share, ...]:
        """Time by line of user code, without ops that have no line."""
        return self._shares(lambda op: op.line, (op for op in self.ops if op.line is not None))

    def by_layer(self) -> tuple[Share, ...]:
        """Time by layer, optimizer and metric, without ops that belong to none."""
        return self._shares(lambda op: op.layer.id if op.layer else 0, (op for op in self.ops if op.layer is not None))

    def by_type(self) -> tuple[Share, ...]:
        """Time by type of the op that ran."""
        return self._shares(lambda op: op.type, self.ops)

    def of_rows(self, rows: Iterable[int]) -> int:
        """Self time of the ops of these nodes, picoseconds."""
        wanted = set(rows)
        return sum(op.self_ps for op in self.ops if op.row in wanted)

    def with_gradients_of(self, rows: Iterable[int]) -> int:
        """Self time of the ops of these nodes and of their gradients, picoseconds."""
        wanted = set(rows)
        return sum(op.self_ps for op in self.ops if op.of in wanted or op.row in wanted)

    def _shares(self, key: Callable[[OpTime], Hashable], ops: Iterable[OpTime]) -> tuple[Share, ...]:
        groups: dict[Hashable, list[OpTime]] = defaultdict(list)
        for op in ops:
            groups[key(op)].append(op)
        found = [
            Share(
                line=_only([op.line for op in group]),
                layer=_only([op.layer for op in group]),
                type=_only([op.type for op in group]) or "",
                calls=sum(op.calls for op in group),
                self_ps=sum(op.self_ps for op in group),
                gradient_ps=sum(op.self_ps for op in group if op.gradient),
                ratio=sum(op.self_ps for op in group) / self.total_ps if self.total_ps else 0.0,
            )
            for group in groups.values()
        ]
        return tuple(sorted(found, key=lambda share: -share.self_ps))


def _only(values: list[T]) -> T | None:
    return values[0] if all(value == values[0] for value in values) else None


def build(trace: OpTrace, index: GraphIndex, pauses: Intervals | None = None) -> OpLines:
    """Joins a trace to the graph nodes of its process; ops that begin in ``pauses`` do not count."""
    compiled = compiled_ops.build(trace)
    stats = op_times.build(trace, compiled, pauses)
    in_data = _data_share(trace)
    ops: list[OpTime] = []
    for row in stats.rows():
        if row.category not in COUNTED:
            continue
        share = in_data.get((row.name, row.type), 0.0)
        for part, data in ((1.0 - share, False), (share, True)):
            if part > 0:
                compiled_op = compiled.ops[row.compiled] if row.compiled >= 0 else None
                node = _node(index, row, compiled_op, data=data)
                made = _op(index, node, row, trace.planes[row.plane].name, part)
                ops.append(_compiled(made, compiled_op))
    ops.sort(key=lambda op: -op.self_ps)
    total = sum(op.self_ps for op in ops)
    return OpLines(ops=tuple(ops), total_ps=total, joined_ps=sum(op.self_ps for op in ops if op.row != NOT_FOUND))


class Origin(NamedTuple):
    """Origin of a node."""

    gradient: bool
    of: int
    """Row of the forward node if this is its gradient; else, or if that was not found, its own row."""
    line: Line | None
    """Line of the user's code that made it."""
    layer: Layer | None
    place: Line | None
    """``line``, else the line that built ``layer``."""


def origin(index: GraphIndex, node: int) -> Origin:
    """Origin of the node of a row; an empty one for ``NOT_FOUND``."""
    gradient = node != NOT_FOUND and index.is_gradient(node)
    forward = index.forward_of(node) if gradient else NOT_FOUND
    of = forward if forward != NOT_FOUND else node
    line, layer = index.maker_of(of) if of != NOT_FOUND else (None, None)
    if line is None and of != node:
        line = index.maker_of(node)[0]
    made = Line(*line) if line is not None else None
    built = Line(layer.file, layer.function, layer.line) if layer is not None and layer.line else None
    return Origin(gradient, of, made, layer, made or built)


def _node(index: GraphIndex, row: op_times.OpRow, compiled: CompiledOp | None, *, data: bool) -> int:
    """The node of an op: by its own name, else by that of the op which XLA made it of."""
    node = index.node_of(row.name, row.type, data=data)
    if node == NOT_FOUND and compiled is not None and compiled.place is None and compiled.op.op_name:
        return index.node_of(compiled.op.op_name, data=data)
    return node


def _op(index: GraphIndex, node: int, row: op_times.OpRow, plane: str, part: float) -> OpTime:
    made = origin(index, node)
    return OpTime(
        name=row.name,
        type=row.type,
        plane=plane,
        calls=round(row.calls * part),
        self_ps=round(row.self_ps * part),
        row=node,
        gradient=made.gradient,
        of=made.of,
        line=made.line,
        layer=made.layer,
        place=made.place,
    )


def _compiled(made: OpTime, compiled: CompiledOp | None) -> OpTime:
    """With what a compiled program says of it; a node of a graph says more of its line."""
    if compiled is None:
        return made
    op, frame = compiled.op, compiled.place
    found = replace(made, shape=op.shape, flops=op.flops)
    if frame is None and op.op_name:
        return replace(found, name=op.op_name)
    if made.row != NOT_FOUND or frame is None:
        return found
    line = Line(frame.file, frame.function, frame.line)
    gradient = op.convolution is not None and op.convolution.gradient
    return replace(found, line=line, place=line, gradient=gradient)


def _data_share(trace: OpTrace) -> dict[tuple[str, str], float]:
    """Share of an op's time inside functions called by tf.data, for ops with any such time."""
    metas, events = trace.metas, trace.events
    captured = [i for i, text in enumerate(trace.strings) if text.startswith(CAPTURED)]
    around = np.isin(metas.name, captured) | (metas.category == Category.INPUT)
    inside: dict[tuple[str, str], float] = defaultdict(float)
    whole: dict[tuple[str, str], float] = defaultdict(float)
    for line in trace.lines_of(LineKind.THREAD):
        meta = events.meta[line.slice]
        is_op = metas.category[meta] == Category.OP
        if not is_op.any():
            continue
        start, dur = events.start_ns[line.slice], events.dur_ns[line.slice]
        spans = intervals.merge(start[around[meta]], (start + dur)[around[meta]])
        at = np.searchsorted(spans[0], start, "right") - 1
        hit = (at >= 0) & (start < spans[1][np.maximum(at, 0)]) if len(spans[0]) else np.zeros(len(start), np.bool_)
        for one in np.unique(meta[is_op]).tolist():
            key = (trace.strings[metas.op_name[one]], trace.strings[metas.op_type[one]])
            mine = meta == one
            whole[key] += float(dur[mine].sum())
            inside[key] += float(dur[mine & hit].sum())
    return {key: value / whole[key] for key, value in inside.items() if value}
