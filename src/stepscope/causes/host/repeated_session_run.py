"""Runs of a session that another run of the same step makes redundant: the same feed, nodes that it computes anyway.

``session.run(train_op, feed)``, then ``session.run(loss, feed)`` and ``session.run(accuracy, feed)``: each run computes
everything that its fetches need, so the forward pass is computed three times.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps_view import StepsView

_PLAIN = frozenset(
    {
        "Const",
        "Placeholder",
        "PlaceholderWithDefault",
        "VarHandleOp",
        "VariableV2",
        "ReadVariableOp",
        "Identity",
        "NoOp",
    }
)
"""Nodes that compute nothing."""
_CHANGES = ("Assign", "Apply", "ResourceApply", "ResourceScatter", "ResourceSparseApply", "Scatter", "SparseApply")
_TAKES = ("IteratorGetNext", "OneShotIterator", "QueueDequeue", "ReaderRead")
"""Ops whose result differs each time: another run of them is another batch."""


class RepeatedRun(Struct, frozen=True, kw_only=True):
    """A run whose fetches the main run could return."""

    run: NamedTime
    shared: float
    """Share of its computing nodes that the main run also computes."""


class Reruns(Struct, frozen=True, kw_only=True):
    """The runs of one step on one feed."""

    main: NamedTime
    others: tuple[RepeatedRun, ...]
    """Longest first."""

    @property
    def lost_ns(self) -> float:
        """Time in nodes that were already computed, within the steady steps."""
        return sum(other.run.total_ns * other.shared for other in self.others)

    @property
    def high_ns(self) -> float:
        """Time of all runs but the main one."""
        return float(sum(other.run.total_ns for other in self.others))


def build(view: StepsView, min_runs: float, min_shared: float) -> Reruns | None:
    """The costliest group of runs; None if each step has only one, or their feeds and graphs are unknown.

    Args:
        view: The session.
        min_runs: A step's runs of the same fetches, of which a rerun needs as many.
        min_shared: Share of the nodes of a rerun that the main run computes too.
    """
    index, steps = view.graphs, view.steps
    if index is None:
        return None
    runs = [
        run
        for run in view.named_times(Kind.SESSION_RUN)
        if run.calls >= min_runs * steps.steady_count and run.name.call_file
    ]
    groups: dict[tuple[str, str, str], list[NamedTime]] = defaultdict(list)
    for run in runs:
        source = view.source_of(run.name.call_file)
        feed = feed_of(source, run.name.call_line) if source is not None else None
        if feed is not None:
            groups[run.name.call_file, run.name.call_function, feed].append(run)
    found = [
        r for group in groups.values() if len(group) > 1 and (r := _of_group(index, group, min_shared)) is not None
    ]
    return max(found, key=lambda r: r.lost_ns, default=None)


def _of_group(index: GraphIndex, group: list[NamedTime], min_shared: float) -> Reruns | None:
    needs = {run.name.id: needed for run in group if (needed := _needed(index, run.name.text))}
    known = [run for run in group if run.name.id in needs]
    if len(known) <= 1:
        return None
    main = max(known, key=lambda run: len(needs[run.name.id]))
    others = []
    for run in known:
        mine = needs[run.name.id]
        if run is main or any(index.table.type_of(row).startswith((*_CHANGES, *_TAKES)) for row in mine):
            continue
        shared = len(mine & needs[main.name.id]) / len(mine)
        if shared >= min_shared:
            others.append(RepeatedRun(run=run, shared=shared))
    return Reruns(main=main, others=tuple(others)) if others else None


def _needed(index: GraphIndex, fetches: str) -> frozenset[int]:
    """Rows of the computing nodes that some fetches need; empty if one of them is not found in one graph.

    Tables hold no control inputs: what a training op waits for is found by its name, under which optimizers put it.
    """
    names = [name.partition(":")[0] for name in fetches.split(", ")]
    for graph in (g.id for g in index.graphs.values() if g.role == "session"):
        rows = index.table.rows_of(graph)
        known = {index.table.name_of(row): row for row in range(rows.start, rows.stop)}
        if all(name in known for name in names):
            seeds = {known[name] for name in names}
            inner = tuple(f"{name}/" for name in names if _waits(index, known[name]))
            seeds |= {row for name, row in known.items() if inner and name.startswith(inner)}
            return frozenset(row for row in _above(index, seeds) if index.table.type_of(row) not in _PLAIN)
    return frozenset()


def _waits(index: GraphIndex, row: int) -> bool:
    """Whether a fetched node only serves to make others run before it."""
    return index.table.type_of(row).startswith(("NoOp", *_CHANGES))


def _above(index: GraphIndex, seeds: Iterable[int]) -> set[int]:
    seen = set(seeds)
    todo = list(seen)
    while todo:
        for row in index.table.inputs_of(todo.pop()).tolist():
            if row >= 0 and row not in seen:
                seen.add(row)
                todo.append(row)
    return seen


def feed_of(source: str, line: int) -> str | None:
    """The feed of the call of ``run`` at a line, as written, and where its names were last bound.

    None if it feeds nothing, or the source does not parse.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_run(node) and _covers(node, line)]
    call = max(calls, key=lambda node: node.lineno, default=None)
    feed = next(_fed(call), None) if call is not None else None
    if feed is None or call is None:
        return None
    names = {node.id for node in ast.walk(feed) if isinstance(node, ast.Name)}
    bound = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id in names
        and node.lineno < call.lineno
    ]
    return f"{ast.unparse(feed)} of line {max(bound, default=0)}"


def _is_run(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "run"


def _covers(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def _fed(call: ast.Call) -> Iterator[ast.expr]:
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "feed_dict")
    yield from call.args[1:2]
