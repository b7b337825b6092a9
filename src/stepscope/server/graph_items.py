"""One op or group of a step's graph for the page, and what a search finds in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.optrace import line_times
from stepscope.derive.optrace.opgraph.scopes import ROOT
from stepscope.model.api.op_graph import GraphDetail, GraphEnd, GraphHits
from stepscope.server.op_graphs import Graphs, ShownGraph
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stepscope.derive.view import SessionView
    from stepscope.tables.optrace import OpTrace

MOST_ENDS, MOST_HITS, MOST_LONGEST = 40, 500, 12


def find(view: SessionView, trace: str, step: int | None, words: str) -> GraphHits:
    """Ops and groups whose names hold all words."""
    shown = view.get(Graphs).of(trace, step)
    sought = words.lower().split()

    def holds(*texts: str) -> bool:
        text = " ".join(texts).lower()
        return bool(sought) and all(word in text for word in sought)

    found: list[tuple[int, int, GraphEnd]] = []
    for group, about in enumerate(shown.scopes.groups):
        if group > ROOT and holds(about.title, about.about):
            found.append((shown.sums.order[group], -1, _end_of(shown, group)))
    for at, node in enumerate(shown.graph.nodes):
        if holds(f"{node.name}:{node.type}"):
            found.append((node.order, at, shown.end(at)))
    found.sort(key=lambda hit: hit[:2])
    return GraphHits(items=tuple(hit for _, _, hit in found[:MOST_HITS]), total=len(found))


def _end_of(shown: ShownGraph, group: int) -> GraphEnd:
    about = shown.scopes.groups[group]
    return GraphEnd(
        id=f"g{group}",
        inside=shown.inside(about.outer),
        title=about.title,
        about=about.about or about.kind,
        own_ns=shown.sums.own_ns[group],
        path_ns=shown.sums.path_ns[group],
    )


def detail(view: SessionView, trace: str, step: int | None, name: str) -> GraphDetail:
    """An op or a group by its name here, or an op by its full name and type, ``scope/name:Type``.

    Raises:
        UsageError: the step has none of that name.
    """
    shown = view.get(Graphs).of(trace, step)
    kind, number = name[:1], int(name[1:]) if name[1:].isdecimal() else -1
    if kind == "g" and ROOT < number < len(shown.scopes.groups):
        return _group(shown, number)
    op, _, op_type = name.rpartition(":")
    node = shown.graph.index.get((op, op_type), number if kind == "n" else -1)
    if not 0 <= node < len(shown.graph.nodes):
        raise UsageError(f"no {name} in the graph of the step: an op of the input, or of another step")
    return _op(view, shown, node)


def _group(shown: ShownGraph, group: int) -> GraphDetail:
    about, sums = shown.scopes.groups[group], shown.sums
    mine = {at for at, of in enumerate(shown.scopes.of_op) if group in shown.scopes.around(of)}
    longest = sorted(mine, key=lambda at: -shown.graph.nodes[at].own_ns)[:MOST_LONGEST]
    takes, gives = _ends(shown, mine)
    return GraphDetail(
        id=f"g{group}",
        inside=shown.inside(about.outer),
        title=about.title,
        name="",
        kind=about.kind,
        about=about.about,
        ops=sums.ops[group],
        calls=sums.calls[group],
        own_ns=sums.own_ns[group],
        ratio=shown.ratio(sums.own_ns[group]),
        path_ns=sums.path_ns[group],
        path_ratio=_of_step(shown, sums.path_ns[group]),
        makes="",
        layer=about.title.removeprefix("gradient of ") if about.kind == "layer" else "",
        file="",
        line=0,
        function="",
        track="",
        start_ns=0,
        dur_ns=0,
        takes=tuple(takes[:MOST_ENDS]),
        takes_total=len(takes),
        gives=tuple(gives[:MOST_ENDS]),
        gives_total=len(gives),
        longest=tuple(shown.end(at) for at in longest),
    )


def _op(view: SessionView, shown: ShownGraph, at: int) -> GraphDetail:
    node = shown.graph.nodes[at]
    origin = line_times.origin(shown.index, node.row)
    takes, gives = _ends(shown, {at})
    trace: OpTrace = shown.view.trace
    ran = node.event >= 0
    line = trace.lines[int(trace.events.line[node.event])].index if ran else -1
    table = shown.index.table
    return GraphDetail(
        id=f"n{at}",
        inside=shown.inside(shown.scopes.of_op[at]),
        title=shown.scopes.titles[at],
        name=node.name,
        kind="op",
        about=node.type,
        ops=1,
        calls=node.calls,
        own_ns=node.own_ns,
        ratio=shown.ratio(node.own_ns),
        path_ns=node.path_ns,
        path_ratio=_of_step(shown, node.path_ns),
        makes=table.text(table.outputs, node.row) if node.row != NOT_FOUND else "",
        layer=origin.layer.name if origin.layer is not None else "",
        file=view.place(origin.place.file, origin.place.line).file if origin.place is not None else "",
        line=origin.place.line if origin.place is not None else 0,
        function=origin.place.function if origin.place is not None else "",
        track=f"{shown.view.name}.{line}" if ran else "",
        start_ns=int(trace.events.start_ns[node.event]) if ran else 0,
        dur_ns=int(trace.events.dur_ns[node.event]) if ran else 0,
        takes=tuple(takes[:MOST_ENDS]),
        takes_total=len(takes),
        gives=tuple(gives[:MOST_ENDS]),
        gives_total=len(gives),
        longest=(),
    )


def _of_step(shown: ShownGraph, ns: int) -> float:
    return ns / max(1, shown.graph.end_ns - shown.graph.begin_ns)


def _ends(shown: ShownGraph, mine: Collection[int]) -> tuple[list[GraphEnd], list[GraphEnd]]:
    """Where what some ops take comes from, and where what they make goes; the largest first."""
    takes: list[GraphEnd] = []
    gives: list[GraphEnd] = []
    for tensor in shown.graph.tensors:
        outside = [taker for taker in tensor.takers if taker not in mine]
        if tensor.source in mine:
            gives += [shown.end(taker, tensor.text, tensor.bytes) for taker in outside]
        elif len(outside) < len(tensor.takers):
            takes.append(shown.end(tensor.source, tensor.text, tensor.bytes))
    return _largest(takes), _largest(gives)


def _largest(ends: Iterable[GraphEnd]) -> list[GraphEnd]:
    return sorted(ends, key=lambda end: -end.bytes)
