"""Op time on source lines, on layers and on op types: an op trace joined to the nodes of the graphs that ran.

The time of a gradient stands where the op stands that it is the gradient of, and is told apart. An op that library code
made inside of a function, with no user code on the way, stands on the line that called the function.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace import op_times
from stepscope.model.session.optrace import Category, LineKind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.graph import Layer
    from stepscope.model.session.optrace import OpTrace

T = TypeVar("T")
COUNTED = frozenset({Category.OP, Category.COLLECTIVE, Category.KERNEL, Category.COPY})
"""What op time is made of: stages of tf.data pipelines are no ops of a graph."""
CAPTURED = "InstantiatedCapturedFunction::"
"""Around functions that tf.data calls."""


class Line(NamedTuple):
    """A line of user code."""

    file: str
    function: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """An op of the trace and where it comes from. Times in picoseconds, of the whole trace."""

    name: str
    type: str
    """As it ran: the optimizer may have replaced the node's own."""
    plane: str
    """What of the trace it ran on."""
    calls: int
    self_ps: int
    row: int
    """Of the table of nodes; -1: no node was found."""
    gradient: bool
    of: int
    """Row of the node that it is the gradient of; ``row`` where it is none or that was not found."""
    line: Line | None
    layer: Layer | None
    place: Line | None
    """``line``, else where ``layer`` was built."""

    @property
    def named(self) -> bool:
        """Whether its maker is known: a line, or a layer, optimizer or metric."""
        return self.place is not None or self.layer is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Op time of one line, layer or type."""

    line: Line | None
    layer: Layer | None
    type: str
    calls: int
    self_ps: int
    gradient_ps: int
    """The part of it in gradients."""
    ratio: float
    """Of all op time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpLines:
    """The ops of a trace, the longest self time first."""

    ops: tuple[OpTime, ...]
    total_ps: int
    joined_ps: int
    """Of ops whose node was found."""

    @property
    def joined_ratio(self) -> float:
        """Share of op time that is joined to nodes."""
        return self.joined_ps / self.total_ps if self.total_ps else 0.0

    @property
    def named_ratio(self) -> float:
        """Share of op time whose maker is known: a node that no line and no layer made is a name and no more."""
        return sum(op.self_ps for op in self.ops if op.named) / self.total_ps if self.total_ps else 0.0

    def by_line(self) -> tuple[Share, ...]:
        """Time by line of user code, without ops that have none."""
        return self._shares(lambda op: op.line, (op for op in self.ops if op.line is not None))

    def by_layer(self) -> tuple[Share, ...]:
        """Time by layer, optimizer and metric, without ops that belong to none."""
        return self._shares(lambda op: op.layer.id if op.layer else 0, (op for op in self.ops if op.layer is not None))

    def by_type(self) -> tuple[Share, ...]:
        """Time by op type, as it ran."""
        return self._shares(lambda op: op.type, self.ops)

    def of_rows(self, rows: Iterable[int]) -> int:
        """Self time of the ops that are one of these nodes, picoseconds."""
        wanted = set(rows)
        return sum(op.self_ps for op in self.ops if op.row in wanted)

    def with_gradients_of(self, rows: Iterable[int]) -> int:
        """Self time of the ops that are one of these nodes or a gradient of one, picoseconds."""
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


def build(trace: OpTrace, index: GraphIndex) -> OpLines:
    """Join a trace to the nodes of the process that it is of."""
    stats = op_times.build(trace)
    in_data = _data_share(trace)
    ops: list[OpTime] = []
    for row in stats.rows():
        if row.category not in COUNTED:
            continue
        share = in_data.get((row.name, row.type), 0.0)
        for part, data in ((1.0 - share, False), (share, True)):
            if part > 0:
                node = index.node_of(row.name, row.type, data=data)
                ops.append(_op(index, node, row, trace.planes[row.plane].name, part))
    ops.sort(key=lambda op: -op.self_ps)
    total = sum(op.self_ps for op in ops)
    return OpLines(ops=tuple(ops), total_ps=total, joined_ps=sum(op.self_ps for op in ops if op.row != NOT_FOUND))


class Origin(NamedTuple):
    """Where a node comes from."""

    gradient: bool
    of: int
    """Row of the node that it is the gradient of; its own where it is none or that was not found."""
    line: Line | None
    """Of the user's code that made it."""
    layer: Layer | None
    place: Line | None
    """``line``, else where ``layer`` was built."""


def origin(index: GraphIndex, node: int) -> Origin:
    """Where the node of a row comes from; nowhere, if that is ``NOT_FOUND``."""
    gradient = node != NOT_FOUND and index.is_gradient(node)
    forward = index.forward_of(node) if gradient else NOT_FOUND
    of = forward if forward != NOT_FOUND else node
    line, layer = index.maker_of(of) if of != NOT_FOUND else (None, None)
    if line is None and of != node:
        line = index.maker_of(node)[0]
    made = Line(*line) if line is not None else None
    built = Line(layer.file, layer.function, layer.line) if layer is not None and layer.line else None
    return Origin(gradient, of, made, layer, made or built)


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


def _data_share(trace: OpTrace) -> dict[tuple[str, str], float]:
    """Share of an op's time that lies in functions that tf.data calls, of ops that have any there."""
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
