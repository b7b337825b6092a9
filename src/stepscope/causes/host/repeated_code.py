"""Code that a graph holds many times over: what a Python loop leaves behind that ran while the graph was made.

A turn of such a loop makes the ops of the same lines again, in the same layer. A loop over layers does not: each layer
makes them once. A loop over weights does, but each turn reads weights of its own, so it is no repeated computation.

Serves unrolled_python_loop, beside the cause of its name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.graph.index import GraphIndex

READS = ("ReadVariableOp", "ResourceGather")
ARGUMENT = "Placeholder"
MAX_PER_TURN = 4
"""Ops of one kind that a line makes in each turn; the rarest kind of a line's ops tells the turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The repeated code of one graph."""

    turns: int
    """How often the code was repeated."""
    nodes: int
    ratio: float
    """Share of the nodes that are neither gradients, which grow with the nodes that they are of, nor an optimizer's."""
    variables: int
    """That it reads."""
    loop: tuple[str, str, int, int] | None
    """(file, function, first line, last line) of the ``for ... in range(...)`` around most of it, where one is."""


def build(index: GraphIndex, graph: int, sources: Mapping[str, str], min_turns: int) -> Repeated | None:
    """Code that stands in a graph at least ``min_turns`` times; None without any."""
    table = index.table
    rows = table.rows_of(graph)
    forward = _forward(index, rows)
    groups: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for row in forward:
        if table.line[row]:
            groups[int(table.file[row]), int(table.line[row]), int(table.type[row]), int(table.owner[row])].append(row)
    counts = [len(group) for (_, _, kind, _), group in groups.items() if table.strings[kind] != "Const"]
    most = max(counts, default=0)
    turns = min((count for count in counts if count * MAX_PER_TURN >= most), default=0)
    if turns < max(min_turns, 1):
        return None
    repeated = [group for group in groups.values() if len(group) >= turns]
    nodes = [row for group in repeated for row in group]
    return Repeated(
        turns=turns,
        nodes=len(nodes),
        ratio=len(nodes) / len(forward),
        variables=len({v for row in nodes for v in _variables(index, row)}),
        loop=_loop(index, nodes, sources),
    )


def _forward(index: GraphIndex, rows: slice) -> list[int]:
    """Nodes of a graph that were made before its first gradient, and later ones that user code made."""
    table = index.table
    gradients = {row for row in range(rows.start, rows.stop) if index.is_gradient(row)}
    first = min(gradients, default=rows.stop)
    return [row for row in range(rows.start, rows.stop) if row < first or (table.line[row] and row not in gradients)]


def _variables(index: GraphIndex, row: int) -> set[int]:
    """Arguments that stand for the variables that a node reads, by itself or by a read of its own."""
    table = index.table
    near = [row, *(i for i in table.inputs_of(row).tolist() if i >= 0)]
    handles = {int(table.inputs_of(r)[0]) for r in near if table.type_of(r) in READS and len(table.inputs_of(r))}
    return {h for h in handles if h >= 0 and table.type_of(h) == ARGUMENT}


def _loop(index: GraphIndex, nodes: list[int], sources: Mapping[str, str]) -> tuple[str, str, int, int] | None:
    table = index.table
    weight: Counter[tuple[str, str, int]] = Counter()
    for row in nodes:
        weight[table.text(table.file, row), table.text(table.function, row), int(table.line[row])] += 1
    loops: Counter[tuple[str, str, int, int]] = Counter()
    for (file, function, line), count in weight.items():
        source = sources.get(file)
        lines = loop_source.range_loop_at(source, line) if source is not None else None
        if lines is not None:
            loops[file, function, lines[0], lines[1]] += count
    return max(loops, key=lambda loop: loops[loop], default=None)
