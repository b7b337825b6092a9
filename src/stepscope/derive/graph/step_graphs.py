"""The graphs of a process that its steps run: the functions called by steps, the functions these call, and
gradients.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import Traced
from stepscope.model.log.graph import GraphRead
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.derive.steps.steps import Steps

OFTEN = 0.1
"""Minimum calls of a function for each step: a function called once in an epoch is no part of the step."""
LONG = 0.05
"""A function that takes more than this share of the steady steps' time counts, however rarely it is called."""


def build(steps: Steps) -> frozenset[int]:
    """Ids of the graphs whose ``graphread`` lines are present."""
    records = steps.worker.records
    starts, ends = steps.windows
    inside = (records.start_ns >= starts[0]) & (records.start_ns < ends[-1])
    kinds = set(np.unique(records.kind[inside]).tolist())
    called = inside & (records.kind == Kind.FUNCTION)
    names = names_of(steps.worker)
    places = set()
    for number in np.unique(records.name[called]).tolist():
        mine = called & (records.name == number)
        often = int(mine.sum()) >= OFTEN * steps.steady_count
        if number in names and (often or int(records.dur_ns[mine].sum()) >= LONG * steps.steady_ns):
            places.add((names[number].file, names[number].line))
    wanted = {
        traced.id
        for traced in steps.worker.all(Traced)
        if (traced.file, traced.line) in places or (traced.owner == "keras" and Kind.EXECUTION in kinds)
    }
    reads = steps.worker.all(GraphRead)
    sessions = Kind.SESSION_RUN in kinds
    roots = [g.id for g in reads if (g.role == "function" and g.of in wanted) or (g.role == "session" and sessions)]
    return _with_what_they_call(roots, reads)


def _with_what_they_call(roots: Iterable[int], reads: list[GraphRead]) -> frozenset[int]:
    inner: dict[int, set[int]] = defaultdict(set)
    for graph in reads:
        inner[graph.id].update(called for _, _, called in graph.calls)
        if graph.role == "gradient":
            inner[graph.of].add(graph.id)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        graph_id = todo.pop()
        if graph_id not in found:
            found.add(graph_id)
            todo += inner[graph_id]
    return frozenset(found)
