"""Code that a graph contains many times: the trace of a Python loop that ran while the graph was built.

Each iteration of such a loop makes the ops of the same lines again, in the same layer. A loop over layers does not:
each layer makes them once. A loop over weights does, but each iteration reads its own weights, so it is not a repeated
computation.

Serves unrolled_python_loop, in addition to the cause of that name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.graph.index import GraphIndex

READS = ("ReadVariableOp", "ResourceGather")
ARGUMENT = "Placeholder"
NO_WORK = frozenset({ARGUMENT, "Identity", "NoOp"})
"""What a graph is handed and hands back: a loop of the graph makes as many of them at its line as it has captures."""
MAX_PER_TURN = 4
"""Ops of one kind that a line makes in each iteration; the rarest kind of a line's ops gives the number of
iterations."""


class RepeatedCode(Struct, frozen=True, kw_only=True):
    """The repeated code of one graph."""

    turns: int
    """Number of repetitions of the code."""
    nodes: int
    ratio: float
    """Share of the nodes that are neither gradients, whose number grows with the nodes that they belong to, nor an
    optimizer's."""
    variables: int
    """Number of variables that it reads."""
    in_turn: bool
    """Whether most of it needs the result of an earlier repetition, as the steps of a recurrent cell do."""
    loop: tuple[str, str, int, int] | None
    """(file, function, first line, last line) of the Python loop around most of it, if there is one."""


def build(index: GraphIndex, graph: int, sources: Mapping[str, str], min_turns: int) -> RepeatedCode | None:
    """Code that a graph contains at least ``min_turns`` times; None if there is none."""
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
    return RepeatedCode(
        turns=turns,
        nodes=len(nodes),
        ratio=len(nodes) / len(forward),
        variables=len({v for row in nodes for v in _variables(index, row)}),
        in_turn=_in_turn(index, rows, repeated),
        loop=_loop(index, nodes, sources),
    )


def _in_turn(index: GraphIndex, rows: slice, groups: list[list[int]]) -> bool:
    """Whether half of the groups, by their nodes, have members most of which depend on another member."""
    own = {row: 1 << number for number, group in enumerate(groups) for row in group}
    behind = dict.fromkeys(own.values(), 0)
    reached: dict[int, int] = {}
    """Row -> the groups, as bits, that it depends on or belongs to."""
    for row in range(rows.start, rows.stop):
        before = 0
        for one in index.table.inputs_of(row).tolist():
            before |= reached.get(one, 0)
        mine = own.get(row, 0)
        if mine & before:
            behind[mine] += 1
        if before | mine:
            reached[row] = before | mine
    dependent = sum(len(group) for number, group in enumerate(groups) if 2 * behind[1 << number] > len(group))
    return 2 * dependent > sum(map(len, groups))


def _forward(index: GraphIndex, rows: slice) -> list[int]:
    """Nodes of a graph that were made before its first gradient, and later ones that user code made, if they work."""
    table = index.table
    gradients = {row for row in range(rows.start, rows.stop) if index.is_gradient(row)}
    first = min(gradients, default=rows.stop)
    every = (row for row in range(rows.start, rows.stop) if table.type_of(row) not in NO_WORK)
    return [row for row in every if row < first or (table.line[row] and row not in gradients)]


def _variables(index: GraphIndex, row: int) -> set[int]:
    """Arguments that stand for the variables that a node reads, directly or through a separate read op."""
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
        lines = loop_source.repeating_at(source, line) if source is not None else None
        if lines is not None:
            loops[file, function, lines[0], lines[1]] += count
    return max(loops, key=lambda loop: loops[loop], default=None)
