"""The graph of one traced run: its ops and the tensors that tasks received from each other, with who needs what.

An op's label names its inputs. ``X`` is an op of the same device; ``X_S33``, which no op is called, is what the op
``X`` of another task sent (the master of a cluster names receiving nodes so, and a worker ``X_G7`` between its own
devices). The transfer's tensor is ``edge_10_X``. An op that ran several times, in a loop, is several nodes; of those an
op takes the newest that had ended when it began.

Source: tensorflow/core/graph/graph_partition.cc, tensorflow/core/distributed_runtime/master_session.cc, graph_mgr.cc.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.readers import run_metadata
from stepscope.tables.optrace import Category
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

_EDGE = re.compile(r"(?:edge_\d+_)?(?P<op>.*)", re.DOTALL)
_RECEIVED = re.compile(r"(?P<op>.+)_[SG]\d+", re.DOTALL)
_OUTPUT = re.compile(r":\d+$")
_DEVICE = re.compile(r"/device:.*", re.DOTALL)
_FED = "_recv_"
"""Head of the names of nodes that stand for what is fed; they have no events."""
_CONSTANT = frozenset({"Const", "VarHandleOp", "NoOp"})
ROUNDED_NS = 1_000
"""TensorFlow's times are whole microseconds where a node has no others."""


class Node(Struct, frozen=True, kw_only=True):
    """An op that ran, or a tensor that was received. Times ns of the trace."""

    plane: int
    """Index of the device's plane."""
    name: str
    """Name of the op, or of the op that sent the tensor."""
    start_ns: int
    end_ns: int
    row: int = -1
    """Row of its event in the trace."""
    link: tuple[str, str] | None = None
    """Tasks that sent and received; None: it is an op."""
    size_bytes: int = 0
    """Bytes that were sent."""
    constant: bool = False
    """Flag: an op that gives the same in every step."""
    fed: bool = False
    """Flag: an op with an input that the program feeds."""

    @property
    def dur_ns(self) -> int:
        """Duration."""
        return self.end_ns - self.start_ns


class StepGraph(Struct, frozen=True, kw_only=True):
    """Nodes of one run. ``inputs[v]`` and ``outputs[v]``: positions of nodes."""

    nodes: tuple[Node, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    """Every node after all its inputs."""

    @property
    def transfers(self) -> tuple[int, ...]:
        """Positions of the tensors that were received."""
        return tuple(v for v, node in enumerate(self.nodes) if node.link is not None)


class _Found(Struct):
    """Nodes of a run with what their inputs are called."""

    nodes: list[Node] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    ops: dict[tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    """Ops by plane and name, in order of their ends."""
    elsewhere: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Ops of all planes by name."""
    sent: dict[tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    """Transfers by the plane that received them and the op that sent them."""


def task_of(device: str) -> str:
    """The task of a device: ``/job:ps/replica:0/task:0``."""
    return _DEVICE.sub("", device)


def short_task(task: str) -> str:
    """``ps 0`` for ``/job:ps/replica:0/task:0``; any other name as it is."""
    match = re.fullmatch(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)", task)
    return f"{match[1]} {match[2]}" if match else task


def build(trace: OpTrace, most: int) -> Iterator[StepGraph]:
    """The graphs of the traced runs of a session, at most ``most``; none if no task received anything, or labels do not
    name inputs.
    """
    tensors, inputs = trace.stats.of_events(run_metadata.TENSOR), trace.stats.of_events(StatName.INPUTS)
    if not len(tensors) or not len(inputs):
        return
    names = dict(zip(inputs.rows.tolist(), (inputs.text(i) for i in range(len(inputs))), strict=True))
    sent = dict(zip(tensors.rows.tolist(), (tensors.text(i) for i in range(len(tensors))), strict=True))
    category = trace.categories()
    rows = np.flatnonzero((category == Category.OP) | (category == Category.COLLECTIVE)).astype(np.int64)
    rows = rows[np.argsort(trace.events.end_ns[rows], kind="stable")]
    for first, last in _windows(trace)[:most]:
        inside = rows[(trace.events.start_ns[rows] >= first) & (trace.events.end_ns[rows] <= last)]
        found = _nodes(trace, inside, names, sent)
        graph = _graph(found)
        if graph is not None and graph.transfers:
            yield graph


def _windows(trace: OpTrace) -> list[tuple[int, int]]:
    runs = next((line for line in trace.lines if line.name == run_metadata.RUNS), None)
    if runs is None or runs.first == runs.last:
        return [(0, int(trace.events.end_ns.max(initial=0)))]
    events = trace.events
    return list(zip(events.start_ns[runs.slice].tolist(), events.end_ns[runs.slice].tolist(), strict=True))


def _nodes(trace: OpTrace, rows: I64, names: Mapping[int, str], sent: Mapping[int, str]) -> _Found:
    found, events = _Found(), trace.events
    sizes = trace.ints(StatName.TRANSFER_BYTES, 0)
    sources, source_names = trace.texts(run_metadata.SOURCE)
    targets, target_names = trace.texts(run_metadata.TARGET)
    for row in rows.tolist():
        plane = trace.lines[events.line[row]].plane
        start, end = int(events.start_ns[row]), int(events.end_ns[row])
        v = len(found.nodes)
        if row in sent:
            match = _EDGE.fullmatch(sent[row])
            name = match["op"] if match else sent[row]
            link = task_of(source_names[sources[row]]), task_of(target_names[targets[row]])
            found.sent[plane, name].append(v)
            node = Node(
                plane=plane, name=name, start_ns=start, end_ns=end, row=row, link=link, size_bytes=int(sizes[row])
            )
        else:
            meta = events.meta[row]
            name = trace.strings[trace.metas.op_name[meta]]
            found.ops[plane, name].append(v)
            found.elsewhere[name].append(v)
            node = Node(
                plane=plane,
                name=name,
                start_ns=start,
                end_ns=end,
                row=row,
                constant=trace.strings[trace.metas.op_type[meta]] in _CONSTANT,
                fed=any(text.startswith(_FED) for text in names.get(row, "").split(", ")),
            )
        found.nodes.append(node)
        found.named.append(names.get(row, ""))
    return found


def _graph(found: _Found) -> StepGraph | None:
    """The nodes in order; None where the labels make a circle."""
    inputs = [tuple(sorted(set(_inputs(found, v)))) for v in range(len(found.nodes))]
    outputs: list[list[int]] = [[] for _ in inputs]
    for v, above in enumerate(inputs):
        for u in above:
            outputs[u].append(v)
    left = [len(above) for above in inputs]
    order = [v for v, count in enumerate(left) if not count]
    for v in order:  # it grows
        for w in outputs[v]:
            left[w] -= 1
            if not left[w]:
                order.append(w)
    if len(order) < len(inputs):
        return None
    return StepGraph(
        nodes=tuple(found.nodes), inputs=tuple(inputs), outputs=tuple(map(tuple, outputs)), order=tuple(order)
    )


def _inputs(found: _Found, v: int) -> Iterator[int]:
    node = found.nodes[v]
    if node.link is not None:
        yield from _sender(found, node)
        return
    for text in found.named[v].split(", "):
        name = _OUTPUT.sub("", text.lstrip("^"))
        if ran := found.ops.get((node.plane, name)):
            yield from _newest(found, ran, node)
        elif match := _RECEIVED.fullmatch(name):
            sender = match["op"]
            if (node.plane, sender) in found.sent:
                yield from found.sent[node.plane, sender]
            else:
                yield from _newest(found, found.elsewhere.get(sender, ()), node)


def _newest(found: _Found, ran: Sequence[int], node: Node) -> list[int]:
    ended = [u for u in ran if found.nodes[u].end_ns <= node.start_ns + ROUNDED_NS and found.nodes[u] is not node]
    return ended[-1:]


def _sender(found: _Found, node: Node) -> list[int]:
    """The op that made what was received. The clocks of two tasks may differ, so only an op that ran once counts."""
    ran = [u for u in found.elsewhere.get(node.name, ()) if found.nodes[u].plane != node.plane]
    return ran if len(ran) == 1 else []
