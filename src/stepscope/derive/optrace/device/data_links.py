"""Links from the op that makes a tensor to the ops that take it: the graph says who takes from whom, times which run.

Of several runs of the maker it is the last that ended before the taker began. Nodes that do not run by themselves
(constants, reads, what the optimizer took out or merged) are passed through, and functions are entered and left
(``derive.graph.producers``). Ops of the input have no links: its functions run several at a time, times do not tell
their runs apart, and their ops often have names of the step's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.graph.producers import Producers
from stepscope.derive.optrace.device.event_links import LinkKind, Links
from stepscope.derive.optrace.host import activity
from stepscope.tables.optrace import Category

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

OPS = (int(Category.OP), int(Category.COLLECTIVE))
"""Categories of events that are runs of a node on the host."""


def build(trace: OpTrace, index: GraphIndex) -> Links:
    """The links of all runs in the trace."""
    runs = _runs(trace, index)
    producers = Producers(index, turns=False)
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for taker, rows in runs.items():
        starts = trace.events.start_ns[rows]
        for maker in producers.makers(taker, runs):
            made = runs[maker]
            last = np.searchsorted(trace.events.end_ns[made], starts, "right") - 1
            known = last >= 0
            sources.append(made[last[known]])
            targets.append(rows[known])
    source, target = np.concatenate(sources), np.concatenate(targets)
    return Links(source, target, np.full(len(source), int(LinkKind.DATA), np.int64))


def _runs(trace: OpTrace, index: GraphIndex) -> dict[int, I64]:
    """Node -> rows of its events, by their ends."""
    metas, strings = trace.metas, trace.strings
    pairs = zip(metas.op_name.tolist(), metas.op_type.tolist(), metas.category.tolist(), strict=True)
    node_of = np.full(len(metas) + 1, NOT_FOUND, np.int64)
    for meta, (name, kind, category) in enumerate(pairs):
        if name and category in OPS:
            node = index.node_of(strings[name], strings[kind])
            if node != NOT_FOUND and not index.of_data(int(index.table.graph[node])):
                node_of[meta] = node
    nodes = np.where(activity.build(trace).of_input, NOT_FOUND, node_of[trace.events.meta])
    for line in trace.lines:
        if line.derived:
            nodes[line.slice] = NOT_FOUND
    rows = np.flatnonzero(nodes != NOT_FOUND)
    rows = rows[np.lexsort((trace.events.end_ns[rows], nodes[rows]))]
    found, first = np.unique(nodes[rows], return_index=True)
    return dict(zip(found.tolist(), np.split(rows, first[1:]), strict=True)) if len(rows) else {}
