"""What PyTorch's optimizers do on the CPU in each step: on how many numbers, op by op or in one pass, and on which
tables of which most rows have no gradient.

By default an optimizer on the CPU runs about ten ops on each tensor, and each of them reads and writes all of it. A
gradient that is dense has all rows of a table, though a batch touches few: those of the others are zeros. Both are of
what was looked at after steps; the time is that between PyTorch's hooks around the step.

Serves optimizer_op_by_op and dense_gradient_of_table.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.python import loop_source
from stepscope.model.log.program import OptimizerSeen
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name
    from stepscope.model.log.program import TableSeen
    from stepscope.tables.place import Place

CPU = ("cpu",)
MIN_LOOKS = 2
"""Looks that must have read the rows of a table."""


class OptimizerWork(Struct, frozen=True, kw_only=True):
    """The optimizer of one line, all of whose tensors are on the CPU."""

    seen: OptimizerSeen
    """The last look at it."""
    looks: tuple[OptimizerSeen, ...]
    name: Name
    ratio: float
    """Share of the steady time in its steps."""
    steps: int

    def zero_ratio(self, table: TableSeen) -> float:
        """The least part of a table's rows without a gradient, of all looks that could read it; 0.0: too few could.

        One look is too few: where a layer begins with zeros, those before it have no gradient in the first step.
        """
        alike = [
            one
            for look in self.looks
            for one in look.tables
            if (one.rows, one.columns) == (table.rows, table.columns) and one.looked and not one.sparse
        ]
        return min(one.zero / one.looked for one in alike) if len(alike) >= MIN_LOOKS else 0.0

    def part(self, table: TableSeen) -> float:
        """The part of the numbers that it changes which are this table's."""
        return min(1.0, table.rows * table.columns / max(1, self.seen.elements))


def build(view: StepsView) -> tuple[OptimizerWork, ...]:
    """The optimizers of the steps' thread, the costliest first."""
    looks: dict[int, list[OptimizerSeen]] = {}
    for seen in view.worker.all(OptimizerSeen):
        looks.setdefault(seen.name, []).append(seen)
    found = []
    for number, every in looks.items():
        ns, steps = _time(view, number)
        name = view.names.get(number)
        own = not any(look.closure for look in every)  # else forward and backward pass are in its steps
        if steps and own and name is not None and all(look.devices == CPU for look in every):
            ratio = min(ns / view.steps.steady_ns, view.anatomy.ratio("optimizer"))
            found.append(OptimizerWork(seen=every[-1], looks=tuple(every), name=name, ratio=ratio, steps=steps))
    return tuple(sorted(found, key=lambda one: -one.ratio))


def _time(view: StepsView, name: int) -> tuple[float, int]:
    """Time in the steps of one line within the steady steps, in ns, and their number."""
    records, windows = view.worker.records, view.steps.windows
    mine = (records.kind == Kind.APPLY) & (records.thread == view.steps.thread) & (records.name == name)
    ends, spent = records.start_ns[mine], records.arg[mine]
    inside = intervals.clipped_sum(ends - spent, ends, windows)
    return float(inside.sum()), int((inside > 0).sum())


def places(view: StepsView, work: OptimizerWork, maker: str) -> tuple[Place, ...]:
    """The lines that call ``maker`` in the user's files that ran, if they are few, then the line of the steps."""
    own = view.place(work.name.call_file, work.name.call_line, function=work.name.call_function)
    made = [view.place(file, line) for file in _files(view, work) for line in _calls(view.source_of(file) or "", maker)]
    return (*(made if len(made) <= MOST_MAKERS else ()), own)


MOST_MAKERS = 3
"""Calls of one name that can be named as the place."""


def _files(view: StepsView, work: OptimizerWork) -> Iterator[str]:
    yield work.name.call_file
    for file in sorted(view.session.sources):
        if file != work.name.call_file:
            yield file


def _calls(source: str, maker: str) -> list[int]:
    tree = loop_source.parsed(source)
    return sorted(
        node.lineno
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and _last(node.func) == maker
    )


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
