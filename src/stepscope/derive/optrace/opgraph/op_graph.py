"""The ops of one traced step as a graph: who hands what to whom, how long each takes, which are on the critical path.

Nodes are those of all typical steps (``critical_path.typical``), so that the graph of each of them is the same; times
are those of the chosen step: own times, without the ops inside, of its work on the device if the trace has any, else
on the host. Ops of the input pipeline are none of the step's.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.graph.producers import Producers
from stepscope.derive.optrace.host.activity import Activity
from stepscope.derive.optrace.host.event_nesting import parents, self_times
from stepscope.derive.optrace.steps import critical_path
from stepscope.model.log.graph import ITEM_BYTES

if TYPE_CHECKING:
    from stepscope.derive.graph.full_shapes import FullShapes
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.records import I64

RUNS = (Activity.OP, Activity.PYTHON, Activity.COLLECTIVE, Activity.GET_NEXT)
INPUT, FRAMEWORK, STEP_OPS = "input pipeline", "framework", "ops"
"""Parts of a path, in addition to those of ``critical_path``."""


class OpNode(Struct, frozen=True, kw_only=True):
    """An op. Times ns, of the chosen step."""

    name: str
    type: str
    row: int
    """Row in the table of nodes; -1: unknown."""
    own_ns: int
    calls: int
    path_ns: int
    """Time on the critical path."""
    order: int
    """Position by first begin, over the typical steps."""
    event: int
    """The trace's event that is its longest run in the step; -1: it did not run, or was not recorded."""


class Tensor(Struct, frozen=True, kw_only=True):
    """What an op makes and others take."""

    source: int
    slot: int
    text: str
    """Type and shape: float32[32,64]; empty: unknown."""
    bytes: int
    """Size; 0: unknown."""
    takers: tuple[int, ...]
    """Nodes that take it, rising."""


class PathPart(Struct, frozen=True, kw_only=True):
    """A stretch of the critical path, from the step's begin on."""

    what: str
    """Name of the part: ``STEP_OPS``, ``INPUT``, ``FRAMEWORK``, or one of ``critical_path``."""
    node: int
    """The op; -1: none."""
    dur_ns: int


class OpGraph(Struct, frozen=True, kw_only=True):
    """The graph of one step."""

    step: int
    """Position among the trace's periods."""
    number: int
    begin_ns: int
    end_ns: int
    device: str
    """Plane whose work is counted; empty: the host's."""
    nodes: tuple[OpNode, ...]
    tensors: tuple[Tensor, ...]
    path: tuple[PathPart, ...]
    """Adds up to the step; neighbours of one kind are one."""
    index: dict[tuple[str, str], int] = field(default_factory=dict)
    """Name and type -> node."""

    @property
    def own_ns(self) -> int:
        """Time of all ops."""
        return sum(node.own_ns for node in self.nodes)


def build(view: OpView, index: GraphIndex, shapes: FullShapes | None = None, step: int | None = None) -> OpGraph | None:
    """The graph of a typical step, of the one of median duration if none is chosen; None if the trace shows no ops.

    Raises:
        LookupError: ``step`` is none of the typical steps.
    """
    steps = critical_path.typical(view.periods)
    if step is not None and step not in steps:
        raise LookupError(step)
    if not steps:
        return None
    chosen = view.periods.typical if step is None else step
    if chosen not in steps:  # the lower of two middle ones may be further from the median than the upper
        chosen = steps[0]
    rows, own = _runs(view)
    period = np.searchsorted(view.periods.start_ns, view.trace.events.start_ns[rows], "right") - 1
    inside = np.isin(period, steps) & (view.trace.events.start_ns[rows] < view.periods.end_ns[np.maximum(period, 0)])
    rows, own, period = rows[inside], own[inside], period[inside]
    if not len(rows):
        return None
    path = next(one for one in view.paths if one.step == chosen)
    by_label: dict[int, int] = defaultdict(int)
    for segment in path.segments:
        if segment.event >= 0 and not segment.what:
            by_label[int(view.labels.index[segment.event])] += segment.dur_ns
    nodes, of_label = _nodes(view, index, (rows, own, period == chosen), by_label)
    return OpGraph(
        step=chosen,
        number=int(view.periods.number[chosen]),
        begin_ns=int(view.periods.start_ns[chosen]),
        end_ns=int(view.periods.end_ns[chosen]),
        device=view.trace.planes[view.device].name if view.device >= 0 else "",
        nodes=nodes,
        tensors=_tensors(index, nodes, shapes),
        path=_parts(view, path, of_label),
        index={(node.name, node.type): at for at, node in enumerate(nodes)},
    )


def _runs(view: OpView) -> tuple[I64, I64]:
    """Rows of the runs of ops, and their own times."""
    rows = view.launches.work if view.launches is not None else view.domain.rows(*RUNS)
    rows = np.sort(rows[view.labels.index[rows] >= 0])
    if not len(rows):
        return rows, rows
    events = view.trace.events
    own = np.empty(len(rows), np.int64)
    lines = events.line[rows]
    bounds = np.flatnonzero(np.diff(lines, prepend=-1)).tolist()
    for first, last in zip(bounds, [*bounds[1:], len(rows)], strict=True):
        mine = rows[first:last]
        own[first:last] = self_times(events.dur_ns[mine], parents(events.start_ns[mine], events.dur_ns[mine]))
    return rows, own


def _nodes(
    view: OpView, index: GraphIndex, runs: tuple[I64, I64, I64], on_path: dict[int, int]
) -> tuple[tuple[OpNode, ...], dict[int, int]]:
    """The nodes by their first begin, and the node of each label."""
    rows, own, mine = runs
    label = view.labels.index[rows]
    offset = (
        view.trace.events.start_ns[rows]
        - view.periods.start_ns[np.searchsorted(view.periods.start_ns, view.trace.events.start_ns[rows], "right") - 1]
    )
    size = len(view.labels.ops)
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, label, offset)
    time = np.bincount(label[mine], weights=own[mine], minlength=size)
    calls = np.bincount(label[mine], minlength=size)
    longest = np.full(size, -1, np.int64)
    by_own = np.argsort(own, kind="stable")
    by_own = by_own[mine[by_own]]
    longest[label[by_own]] = rows[by_own]
    known = np.unique(label)
    known = known[np.argsort(first[known], kind="stable")]
    nodes = tuple(
        OpNode(
            name=view.labels.ops[at][0],
            type=view.labels.ops[at][1],
            row=index.node_of(*view.labels.ops[at]),
            own_ns=round(float(time[at])),
            calls=int(calls[at]),
            path_ns=on_path.get(at, 0),
            order=order,
            event=int(longest[at]),
        )
        for order, at in enumerate(known.tolist())
    )
    return nodes, {at: order for order, at in enumerate(known.tolist())}


def _tensors(index: GraphIndex, nodes: tuple[OpNode, ...], shapes: FullShapes | None) -> tuple[Tensor, ...]:
    by_row: dict[int, list[int]] = defaultdict(list)
    for at, node in enumerate(nodes):
        if node.row != NOT_FOUND:
            by_row[node.row].append(at)
    producers = Producers(index, turns=True)
    takers: dict[tuple[int, int], set[int]] = defaultdict(set)
    for row, takes in by_row.items():
        for maker, slots in producers.makers(row, by_row).items():
            for at in takes:
                source = _nearest(nodes, by_row[maker], at)
                for slot in slots:
                    if source != at:
                        takers[source, slot].add(at)
    return tuple(
        _tensor(index, nodes[source].row, (source, slot), tuple(sorted(found)), shapes)
        for (source, slot), found in sorted(takers.items())
    )


def _nearest(nodes: tuple[OpNode, ...], makers: list[int], taker: int) -> int:
    """Of the ops of one node (its function is called more than once) the one whose call the taker is nearest to."""
    if len(makers) == 1:
        return makers[0]
    path = nodes[taker].name.split("/")

    def shared(maker: int) -> tuple[int, int]:
        other = nodes[maker].name.split("/")
        alike = next(
            (i for i, (a, b) in enumerate(zip(path, other, strict=False)) if a != b), min(len(path), len(other))
        )
        return alike, nodes[maker].own_ns

    return max(makers, key=shared)


def _tensor(
    index: GraphIndex, row: int, made: tuple[int, int], takers: tuple[int, ...], shapes: FullShapes | None
) -> Tensor:
    source, slot = made
    specs = index.table.specs_of(row)
    if slot >= len(specs):
        return Tensor(source=source, slot=slot, text="", bytes=0, takers=takers)
    full = shapes.of(row, slot) if shapes is not None else None
    shape = full if full is not None else specs[slot].shape
    dims = ",".join("?" if size < 0 else str(size) for size in shape) if shape is not None else "*"
    size = ITEM_BYTES.get(specs[slot].dtype, 0)
    for one in shape if shape is not None else (0,):
        size *= max(0, one)
    return Tensor(source=source, slot=slot, text=f"{specs[slot].dtype}[{dims}]", bytes=size, takers=takers)


def _parts(view: OpView, path: critical_path.Path, of_label: dict[int, int]) -> tuple[PathPart, ...]:
    found: list[PathPart] = []
    for segment in reversed(path.segments):
        what, node = segment.what or FRAMEWORK, -1
        if segment.event >= 0 and not segment.what:
            node = of_label.get(int(view.labels.index[segment.event]), -1)
            what = STEP_OPS if node >= 0 else INPUT if view.domain.of_input[segment.event] else FRAMEWORK
        dur = segment.dur_ns
        if found and (found[-1].what, found[-1].node) == (what, node):
            dur += found.pop().dur_ns
        found.append(PathPart(what=what, node=node, dur_ns=dur))
    return tuple(found)
