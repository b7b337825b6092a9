"""Time of the ops of the steps by source line: all layers and ops of one line are one row.

An op counts on the innermost line of user code that made it, else on the line that built its layer; a gradient on the
line of its forward op. Ops that work for the input are left out.

Serves the general detectors, the settling of the ledger, and the report's short list of ops.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.optrace import line_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.line_times import OpTime
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

TOP_TYPES = 3
_VENDOR = re.compile(r"^_(Mkl(Native)?)?(?=[A-Z])")
UPDATE = re.compile(r"AssignSub(VariableOp)?$|(Resource)?(Sparse)?Apply[A-Z]|ResourceScatter|ScatterSub$")
"""Types of nodes that change variables as optimizers do."""
MIN_NAMED = 0.3
"""Share of the compute's time from which lines found another way than by an op trace stand for it."""


class ComputeLine(Struct, frozen=True, kw_only=True):
    """Op time of one source line."""

    place: Place
    ratio: float
    """Share of all op time of the steps."""
    types: tuple[tuple[str, float], ...]
    """Types of its ops that take most, each with its share of the line's op time."""
    updates_ratio: float = 0.0
    """Share of the line's op time in the optimizer's updates of variables."""
    rows: frozenset[int] = frozenset()
    """Rows of the nodes of its ops, of gradients the forward nodes."""

    @property
    def types_text(self) -> str:
        """``Conv2D, MatMul``."""
        return ", ".join(name for name, _ in self.types)


class ComputeLines(Struct, frozen=True, kw_only=True):
    """Op time of the traced steps by line, the costliest first."""

    lines: tuple[ComputeLine, ...]
    types: tuple[tuple[str, float], ...]
    """Types of ops that take most, each with its share of all op time."""
    named: float
    """Share of op time with a known line."""


def build(view: SessionView) -> ComputeLines | None:
    """The lines; None without an op trace of the steps, or without time in their ops."""
    trace, index = view.traces.shown, view.graphs
    if trace is None or index is None:
        return None
    ops = [op for op in line_times.build(trace.trace, index, trace.periods.pauses).ops if not of_input(index, op)]
    total = sum(op.self_ps for op in ops)
    if not total:
        return None
    groups: dict[tuple[str, int], list[OpTime]] = defaultdict(list)
    for op in ops:
        if op.place is not None:
            groups[op.place.file, op.place.line].append(op)
    updaters = optimizers(index)
    lines = [
        ComputeLine(
            place=view.place(file, line, function=_function(group)),
            ratio=sum(op.self_ps for op in group) / total,
            types=top_types(group),
            updates_ratio=_updates(group, updaters),
            rows=frozenset(op.of for op in group),
        )
        for (file, line), group in groups.items()
    ]
    return ComputeLines(
        lines=tuple(sorted(lines, key=lambda line: -line.ratio)),
        types=top_types(ops),
        named=sum(line.ratio for line in lines),
    )


def top_types(ops: Iterable[OpTime]) -> tuple[tuple[str, float], ...]:
    """The types of ops that take most time, each with its share."""
    time: Counter[str] = Counter()
    for op in ops:
        time[plain_type(op.type or op.name)] += op.self_ps
    total = sum(time.values())
    return tuple((name, ps / total) for name, ps in time.most_common(TOP_TYPES) if total)


def plain_type(name: str) -> str:
    """The type of an op as users know it: ``_MklNativeFusedMatMul`` is oneDNN's FusedMatMul."""
    return _VENDOR.sub("", name)


def _updates(ops: Sequence[OpTime], updaters: frozenset[int]) -> float:
    """Share of the ops' time in updates of variables, and in calls of optimizers."""
    total = sum(op.self_ps for op in ops)
    mine = sum(op.self_ps for op in ops if UPDATE.match(op.type) or (op.layer is not None and op.layer.id in updaters))
    return mine / total if total else 0.0


def optimizers(index: GraphIndex) -> frozenset[int]:
    """Ids of the layers that make updates of weights."""
    table = index.table
    kinds = [i for i, text in enumerate(table.strings) if UPDATE.match(text)]
    return frozenset(table.owner[np.isin(table.type, kinds)].tolist()) - {0}


def _function(ops: Iterable[OpTime]) -> str:
    """The function of a line; lines of one file and number have one."""
    return next((op.place.function for op in ops if op.place is not None), "")


def of_input(index: GraphIndex, op: OpTime) -> bool:
    """Whether an op works for the input pipeline."""
    return op.row != NOT_FOUND and index.of_data(int(index.table.graph[op.row]))
