"""Work of a step's graph that gives the same result in each call: it reads only captured tensors and constants.

Variables that nothing writes count as constant too (no graph of the process, and no line of Python that may run again):
the weights of a model that only predicts, a fixed basis. The optimizer itself computes what depends on graph constants
alone; captured tensors are arguments to it, which may change. In the graph of a session, what each run is fed as the
same object with the same numbers counts as constant as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import invariant_work_in_loop
from stepscope.derive.graph import python_writes, written_variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.values import FeedsSeen


class ConstantWork(Struct, frozen=True, kw_only=True):
    """Work that the steps repeat in each call without need."""

    heavy: tuple[int, ...]
    """Rows of costly types, in order of creation."""
    nodes: frozenset[int]
    """Rows of everything that could be computed once and takes time."""


MIN_LOOKS = 8
"""Looks at the feeds of a session's runs; fewer do not say that they are always the same."""


def fed_the_same(feeds: Iterable[FeedsSeen]) -> frozenset[str]:
    """Names of the placeholders that every run of a session that feeds them feeds the same."""
    newest = {seen.name: seen for seen in feeds if seen.looks >= MIN_LOOKS}
    same = {name for seen in newest.values() for name in seen.same}
    return frozenset(same - {name for seen in newest.values() for name in seen.changed})


def build(
    index: GraphIndex, sources: Mapping[str, str], min_elements: int, fed: Collection[str] = ()
) -> ConstantWork | None:
    """The constant work of the process's graphs; None if there is none. Variables count only if all graphs were read.

    Args:
        index: the graphs.
        sources: texts of the user's files by absolute path, in which Python may write variables.
        min_elements: that a costly op works on.
        fed: names of placeholders of sessions that are always fed the same.
    """
    called = {inner for g in index.graphs.values() for _, _, inner in g.calls}
    whole = called <= set(index.graphs) and all(g.state == "read" for g in index.graphs.values())
    whole = whole and not python_writes.present(index, sources)
    written = written_variables.names(index) if whole else frozenset()
    nodes: set[int] = set()
    for graph in sorted(index.graphs):
        if index.of_data(graph):
            continue
        rows = index.table.rows_of(graph)
        kept = set(index.table.rows_with(graph, index.graphs[graph].constants))
        if fed and index.graphs[graph].role == "session":
            kept |= {row for row in range(rows.start, rows.stop) if f"{index.table.name_of(row)}:0" in fed}
        if whole:
            kept |= written_variables.others(index, graph, written)
        nodes.update(invariant_work_in_loop.followed(index, range(rows.start, rows.stop), kept))
    costly = (row for row in sorted(nodes) if index.table.type_of(row) in invariant_work_in_loop.HEAVY)
    heavy = tuple(
        row for row in costly if invariant_work_in_loop.large(index, row, min_elements) and not index.is_gradient(row)
    )
    return ConstantWork(heavy=heavy, nodes=frozenset(nodes)) if heavy else None
