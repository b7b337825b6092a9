"""The graph of a traced step for the page: what is open, what is chosen, what a search finds."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive import job_framework
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.optrace.opgraph import folding, op_graph, picture, scopes
from stepscope.derive.optrace.opgraph.folding import FoldedGraph, Sums
from stepscope.derive.optrace.opgraph.op_graph import OpGraph, PathPart
from stepscope.derive.optrace.opgraph.scopes import ROOT, Scopes
from stepscope.derive.optrace.steps import critical_path
from stepscope.derive.optrace.trace_view import OpView
from stepscope.model.api.op_graph import (
    GraphArrow,
    GraphEnd,
    GraphItem,
    GraphStep,
    GraphStretch,
    OpGraphView,
)
from stepscope.report.sections import op_table
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.view import SessionView

TAKE_ONE = "to take one while its job runs: stepscope trace JOB"
LEAST_STRETCH = 0.005
"""Share of the step from which a stretch of its path is listed."""


def no_trace(view: SessionView) -> str:
    """That a session has no op trace, and what would give it one."""
    why = job_framework.untraced(view)
    return f"the session has no op trace: {why}" if why else f"the session has no op trace; {TAKE_ONE}"


class ShownGraph(Struct, frozen=True, kw_only=True):
    """The graph of one step of one trace."""

    view: OpView
    index: GraphIndex
    graph: OpGraph
    scopes: Scopes
    sums: Sums

    def id_of(self, group: int, node: int) -> str:
        """Name of a group or an op."""
        return f"g{group}" if group > ROOT else f"n{node}"

    def inside(self, group: int) -> tuple[str, ...]:
        """Names of the groups around, the innermost first."""
        return tuple(f"g{one}" for one in self.scopes.around(group))

    def ratio(self, ns: int) -> float:
        """Share of the time of all ops."""
        return ns / self.graph.own_ns if self.graph.own_ns else 0.0

    def end(self, node: int, text: str = "", size: int = 0) -> GraphEnd:
        """An op at the other end of an arrow."""
        op = self.graph.nodes[node]
        return GraphEnd(
            id=f"n{node}",
            inside=self.inside(self.scopes.of_op[node]),
            title=self.scopes.titles[node],
            about=op.type,
            own_ns=op.own_ns,
            path_ns=op.path_ns,
            text=text,
            bytes=size,
        )


class Graphs:
    """The graphs of a session that were asked for."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._shapes: dict[str, tuple[GraphIndex, FullShapes]] = {}
        self._known: dict[tuple[str, int | None], ShownGraph] = {}
        traces = view.traces
        self.traces = {one.name: one for one in traces.views}
        self._first = traces.shown.name if traces.shown is not None else ""
        if not self.traces and traces.elsewhere:
            stored = traces.elsewhere[0]
            self._first = stored.name
            self.traces[stored.name] = OpView(stored.load(), stored.name, worker=stored.worker)

    def of(self, trace: str, step: int | None) -> ShownGraph:
        """The graph of a step, by default that of the median one of the report's trace.

        Raises:
            UsageError: there is no op trace, no such step, or no op in it.
            SessionError: the trace cannot be read.
        """
        if not self.traces:
            raise UsageError(no_trace(self._view))
        name = trace or self._first
        if name not in self.traces:
            raise UsageError(f"no op trace {name}; expected one of {', '.join(self.traces)}")
        if (name, step) not in self._known:
            self._known[name, step] = self._made(self.traces[name], step)
        return self._known[name, step]

    def _made(self, view: OpView, step: int | None) -> ShownGraph:
        if view.name not in self._shapes:
            index = op_table.index_of(self._view, view.worker)
            self._shapes[view.name] = index, FullShapes(index, self._view.step_samples)
        index, shapes = self._shapes[view.name]
        try:
            graph = op_graph.build(view, index, shapes, step)
        except LookupError as error:
            known = ", ".join(map(str, critical_path.typical(view.periods)))
            raise UsageError(f"no graph of step {step} of {view.name}; expected one of {known}") from error
        if graph is None:
            raise UsageError(f"{view.name} shows no ops of a step; {TAKE_ONE}")
        made = scopes.build(graph, index)
        return ShownGraph(view=view, index=index, graph=graph, scopes=made, sums=Sums(graph, made))


def look(view: SessionView, trace: str, step: int | None, opened: str) -> OpGraphView:
    """The graph with some groups open. ``opened``: their names, with commas between; empty: the usual ones."""
    graphs = view.get(Graphs)
    shown = graphs.of(trace, step)
    graph, periods = shown.graph, shown.view.periods
    began = time.thread_time()
    wanted = _groups(shown, opened) if opened else folding.usual(shown.scopes, shown.sums)
    folded = folding.build(graph, shown.scopes, shown.sums, wanted)
    places = picture.build(folded)
    took_ms = 1e3 * (time.thread_time() - began)
    names = [shown.id_of(item.group, item.node) for item in folded.items]
    return OpGraphView(
        trace=shown.view.name,
        traces=tuple(graphs.traces),
        steps=tuple(
            GraphStep(step=at, number=int(periods.number[at]), ns=int(periods.dur_ns[at]))
            for at in critical_path.typical(periods)
        ),
        step=graph.step,
        begin_ns=graph.begin_ns,
        end_ns=graph.end_ns,
        step_ns=graph.end_ns - graph.begin_ns,
        device=graph.device,
        linked=bool(graph.tensors),
        ops=len(graph.nodes),
        own_ns=graph.own_ns,
        path=_parts(graph),
        stretches=_stretches(shown, folded),
        items=tuple(
            _item(shown, item, (*places.corners[at], *places.sizes[at])) for at, item in enumerate(folded.items)
        ),
        arrows=tuple(
            GraphArrow(
                source=names[arrow.source],
                target=names[arrow.target],
                points=tuple(round(one, 1) for point in places.ways[at] for one in point),
                text=_text(graph, arrow),
                tensors=len(arrow.tensors),
                bytes=arrow.bytes,
                unknown=arrow.unknown,
                back=at in places.back,
                path_ns=arrow.path_ns,
            )
            for at, arrow in enumerate(folded.arrows)
        ),
        width=places.width,
        height=places.height,
        open=tuple(f"g{group}" for group in sorted(folded.opened)),
        left_folded=folded.left_folded,
        layout_ms=round(took_ms, 1),
    )


def _groups(shown: ShownGraph, opened: str) -> Collection[int]:
    if opened == "all":
        return range(1, len(shown.scopes.groups))
    return {int(name[1:]) for name in opened.split(",") if name[:1] == "g" and name[1:].isdecimal()}


def _item(shown: ShownGraph, item: folding.Item, place: tuple[float, float, float, float]) -> GraphItem:
    group = shown.scopes.groups[item.group] if item.node < 0 else None
    x, y, width, height = place
    return GraphItem(
        id=shown.id_of(item.group, item.node),
        outer=f"g{item.outer}" if item.outer > ROOT else "",
        title=group.title if group is not None else shown.scopes.titles[item.node],
        kind=group.kind if group is not None else "op",
        about=group.about if group is not None else shown.graph.nodes[item.node].type,
        x=round(x, 1),
        y=round(y, 1),
        width=round(width, 1),
        height=round(height, 1),
        open=item.open,
        ops=item.ops,
        calls=item.calls,
        own_ns=item.own_ns,
        ratio=shown.ratio(item.own_ns),
        path_ns=item.path_ns,
    )


def _text(graph: OpGraph, arrow: folding.Arrow) -> str:
    if len(arrow.tensors) != 1:
        return ""
    (handed,) = arrow.tensors
    return next((one.text for one in graph.tensors if (one.source, one.slot) == handed), "")


def _parts(graph: OpGraph) -> tuple[GraphStretch, ...]:
    sums: dict[str, int] = defaultdict(int)
    for part in graph.path:
        sums[part.what] += part.dur_ns
    step_ns = graph.end_ns - graph.begin_ns
    found = [
        GraphStretch(what=what, id="", title=what, ns=ns, ratio=ns / step_ns if step_ns else 0.0)
        for what, ns in sums.items()
    ]
    return tuple(sorted(found, key=lambda part: -part.ns))


def _stretches(shown: ShownGraph, folded: FoldedGraph) -> tuple[GraphStretch, ...]:
    """The path over what is seen: neighbours of one item as one, then the sum of the short ones."""
    seen = {item.group: item for item in folded.visible() if item.node < 0}
    step_ns = max(1, shown.graph.end_ns - shown.graph.begin_ns)
    every = _joined((*_seen(shown, seen, part), part.dur_ns) for part in shown.graph.path)
    long = _joined(one for one in every if one[3] >= LEAST_STRETCH * step_ns)
    rest = step_ns - sum(ns for _, _, _, ns in long)
    if rest > 0:
        long.append(("shorter", "", "shorter stretches", rest))
    return tuple(
        GraphStretch(what=what, id=name, title=title, ns=ns, ratio=ns / step_ns) for what, name, title, ns in long
    )


def _joined(stretches: Iterable[tuple[str, str, str, int]]) -> list[tuple[str, str, str, int]]:
    found: list[tuple[str, str, str, int]] = []
    for *one, ns in stretches:
        if found and list(found[-1][:3]) == one:
            found[-1] = (*found[-1][:3], found[-1][3] + ns)
        else:
            found.append((one[0], one[1], one[2], ns))
    return found


def _seen(shown: ShownGraph, seen: dict[int, folding.Item], part: PathPart) -> tuple[str, str, str]:
    if part.node < 0:
        return part.what, "", part.what
    around = [*shown.scopes.around(shown.scopes.of_op[part.node])]
    folded = next((group for group in reversed(around) if group in seen), None)
    if folded is not None:
        return part.what, f"g{folded}", shown.scopes.groups[folded].title
    return part.what, f"n{part.node}", shown.scopes.titles[part.node]
