"""The function of the user's code whose own ops take most of the compiled step, and the lines from which it is called.

Ops of library layers, dense products and the optimizer's updates are what a model has to compute; what is left was
written by hand: losses, metrics, augmentation, features. Its time is followed from the traced function to the functions
that it calls, for as long as one of them has nearly all of it.

Serves the general detector of compute.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import compute_lines
from stepscope.derive.graph.index import CALLING, NOT_FOUND
from stepscope.derive.optrace import line_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.line_times import OpTime
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

DENSE = ("matmul", "conv", "einsum", "rnn", "lstm", "gru")
"""Parts of the names of op types that multiply and add, in lower case, those fused or made by oneDNN included."""
CONCENTRATED = 0.8
"""Share of a function's time that one callee or line must have for the descent to go on to it."""
MAX_LINES = 3
MAX_CALLERS = 3
LEAST = 0.05
"""Share of the function's time below which a line is left out."""


class HotFunction(Struct, frozen=True, kw_only=True):
    """A function whose ops take much of the step."""

    name: str
    """Its qualified name; "" at the top of a file."""
    lines: tuple[tuple[Place, float], ...]
    """Its lines that make the ops, or call what does, with their share of its time; most time first."""
    callers: tuple[Place, ...]
    """Lines from which it is reached within the compiled function, the nearest first."""
    ratio: float
    """Share of all op time of the steps."""
    rows: frozenset[int]
    """Rows of the nodes of its ops, of gradients the forward nodes."""
    types: tuple[tuple[str, float], ...]
    """Types of its ops that take most, each with its share."""
    maker: str
    """Layer or metric in whose call all of its ops are made; "" if there is none."""
    reads_weights: bool | None
    """Whether its ops depend on variables of the model; None: not known."""

    @property
    def single(self) -> bool:
        """Whether one line has nearly all of the time."""
        return bool(self.lines) and self.lines[0][1] >= CONCENTRATED

    @property
    def types_text(self) -> str:
        """``TopKV2, Cast``."""
        return ", ".join(name for name, _ in self.types)


class _Timed(Struct, frozen=True):
    """An op by hand, with its path from the outermost function on."""

    op: OpTime
    path: tuple[tuple[str, str, int], ...]


def build(view: SessionView) -> HotFunction | None:
    """The function; None without an op trace of the steps, or without ops by hand."""
    trace, index = view.traces.shown, view.graphs
    if trace is None or index is None:
        return None
    timed = line_times.build(trace.trace, index, trace.periods.pauses)
    ops = [op for op in timed.ops if not compute_lines.of_input(index, op)]
    total = sum(op.self_ps for op in ops)
    updaters = compute_lines.optimizers(index)
    mine = [
        _Timed(op, tuple(reversed(index.path_of(op.of))))
        for op in ops
        if op.of != NOT_FOUND and not _needed(op) and not (op.layer is not None and op.layer.id in updaters)
    ]
    mine = [timed for timed in mine if timed.path and _by_hand(timed)]
    if not total or not mine:
        return None
    depth, inside = _descend(mine)
    return _function(view, index, inside, depth, sum(timed.op.self_ps for timed in inside) / total)


def _needed(op: OpTime) -> bool:
    """Whether a model has to compute the op: a dense product, or an optimizer's update."""
    name = f"{op.type} {op.name.rpartition('/')[2]}".lower()
    return bool(compute_lines.UPDATE.match(op.type)) or any(word in name for word in DENSE)


def _by_hand(timed: _Timed) -> bool:
    """Whether no layer made the op, or one whose class is the user's: its methods are on the path."""
    layer = timed.op.layer
    return layer is None or any(function.startswith(f"{layer.cls}.") for _, function, _ in timed.path)


def _descend(ops: Sequence[_Timed]) -> tuple[int, list[_Timed]]:
    """(position on the paths of the deepest function that has nearly all of its caller's time, its ops)."""
    inside, depth = _largest(ops, 0), 0
    while True:
        deeper = _largest([timed for timed in inside if len(timed.path) > depth + 1], depth + 1)
        if _time(deeper) < CONCENTRATED * _time(inside):
            return depth, inside
        inside, depth = deeper, depth + 1


def _largest(ops: Iterable[_Timed], depth: int) -> list[_Timed]:
    """The ops of the function with most time at a position of the paths."""
    groups: dict[tuple[str, str], list[_Timed]] = defaultdict(list)
    for timed in ops:
        groups[timed.path[depth][:2]].append(timed)
    return max(groups.values(), key=_time, default=[])


def _time(ops: Iterable[_Timed]) -> int:
    return sum(timed.op.self_ps for timed in ops)


def _function(view: SessionView, index: GraphIndex, ops: list[_Timed], depth: int, ratio: float) -> HotFunction:
    total = _time(ops)
    lines: Counter[tuple[str, str, int]] = Counter()
    for timed in ops:
        lines[timed.path[depth]] += timed.op.self_ps
    above: Counter[tuple[tuple[str, str, int], ...]] = Counter()
    for timed in ops:
        above[timed.path[:depth][::-1][:MAX_CALLERS]] += timed.op.self_ps
    makers = {timed.op.layer.name if timed.op.layer is not None else "" for timed in ops}
    return HotFunction(
        name=ops[0].path[depth][1].replace("<module>", ""),
        lines=tuple(
            (view.place(file, line, function=function), time / total)
            for (file, function, line), time in lines.most_common(MAX_LINES)
            if time >= LEAST * total
        ),
        callers=tuple(view.place(file, line, function=function) for file, function, line in above.most_common(1)[0][0]),
        ratio=ratio,
        rows=frozenset(timed.op.of for timed in ops),
        types=compute_lines.top_types(timed.op for timed in ops),
        maker=makers.pop() if len(makers) == 1 else "",
        reads_weights=_reads_weights(index, [timed.op.of for timed in ops]),
    )


def _updated(index: GraphIndex, graphs: Iterable[int]) -> set[int]:
    """Rows of what optimizers change in these graphs: variables of a session are nodes of its graph."""
    table = index.table
    found: set[int] = set()
    for graph in graphs:
        rows = table.rows_of(graph)
        for row in range(rows.start, rows.stop):
            if compute_lines.UPDATE.match(table.type_of(row)):
                found.update(table.inputs_of(row)[:1].tolist())
    return found - {NOT_FOUND}


def _reads_weights(index: GraphIndex, rows: Sequence[int]) -> bool | None:
    """Whether nodes depend on variables that are trained; None if they are in graphs that others call, or in ones that
    were not read to their end.
    """
    table = index.table
    graphs = {int(table.graph[row]) for row in rows}
    if any(graph in index.caller or graph not in index.graphs for graph in graphs):
        return None
    trained = {
        row
        for graph in graphs
        for row in table.rows_with(graph, [number for number, _, _, train in index.graphs[graph].variables if train])
    } | _updated(index, graphs)
    seen, left = set(rows), list(rows)
    while left:
        row = left.pop()
        if row in trained:
            return True
        if table.type_of(row) in CALLING:
            return None
        new = [one for one in table.inputs_of(row).tolist() if one >= 0 and one not in seen]
        seen.update(new)
        left += new
    return False
