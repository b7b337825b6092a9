"""What the largest step of a process needs, by the shapes of its graph; and the batch in which the process died.

Serves MEM004 and the report's room for larger batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system.memory_owners import TENSORS, WORK_SPACE, MemoryOwner
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.graph.step_memory import StepMemories
from stepscope.model.log.events import BatchSeen, DatasetMade, IteratorMade, Traced
from stepscope.model.log.graph import UNKNOWN
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.graph.step_memory import LiveTensor, StepMemory
    from stepscope.derive.view import SessionView
    from stepscope.model.log.graph import Layer
    from stepscope.model.session.session import Worker
    from stepscope.tables.place import Place

WHOLE = 64
"""Samples from which one batch of all that there is says something: fewer are a usual batch."""
MIN_LAYER = 0.15
"""Share of a step's memory from which a layer is named."""
LAYERS = 2
"""Most layers that are named."""
ROLES = {"train": "fit", "test": "evaluate", "predict": "predict"}


def running(worker: Worker) -> BatchSeen | None:
    """The batches of the Keras loop in which a process ended; None outside of one."""
    seen = [one for one in worker.all(BatchSeen) if one.size]
    if not seen:
        return None
    records = worker.records
    ended = records.start_ns[records.kind == Kind.LOOP]
    return seen[-1] if not (ended == seen[-1].loop).any() else None


def batch_of(view: SessionView, worker: Worker) -> int:
    """Samples of a step; 0: unknown."""
    if view.steps is not None and view.worker is not None and view.worker.info.key == worker.info.key:
        mean = int(view.steps.samples[view.steps.steady].mean())
        if mean > 0:
            return mean
    sizes = [b.size for b in worker.all(BatchSeen) if b.size] or [i.batch for i in worker.all(IteratorMade) if i.batch]
    sizes = sizes or [d.batch for d in worker.all(DatasetMade) if d.batch]
    return sizes[-1] if sizes else 0


class StepNeed(Struct, frozen=True, kw_only=True):
    """What a call of the largest function of a process needs."""

    memory: StepMemory
    function: str
    traced_ns: int
    """When its trace had ended."""
    owner: MemoryOwner


def step(view: SessionView, worker: Worker, last: BatchSeen | None = None) -> StepNeed | None:
    """The function whose call needs most; None without graphs, or where the size of the batch is not known.

    Args:
        view: the session.
        worker: its process.
        last: the Keras loop to which the step belongs; None: any.
    """
    if not len(worker.graphs):
        return None
    index = GraphIndex(worker)
    traces = _of_loop(index, {t.id: t for t in worker.all(Traced) if t.owner != "tf.data"}, last)
    open_batch = last.size if last is not None else batch_of(view, worker)
    best: StepNeed | None = None
    for graph in index.graphs.values():
        traced = traces.get(graph.of)
        if graph.role != "function" or graph.id in index.caller or traced is None:
            continue
        samples = open_batch or _own_batch(index, graph.id)
        if not samples:
            continue
        memory = StepMemories(index, samples).of(graph.id)
        if best is None or memory.total >= best.memory.total:
            best = _need(view, index, memory, traced, last)
    return best


def _of_loop(index: GraphIndex, traces: dict[int, Traced], last: BatchSeen | None) -> dict[int, Traced]:
    """The traces that a Keras loop runs: those made in it, else for one that does not train those without updates."""
    if last is None:
        return traces
    read = {graph.of for graph in index.graphs.values() if graph.role == "function"}
    mine = {number: t for number, t in traces.items() if t.at >= last.loop and number in read}
    if mine or last.role == "train":
        return mine or traces
    return {number: t for number, t in traces.items() if not t.updates}


def _own_batch(index: GraphIndex, graph: int) -> int:
    """The first dimension of a graph's largest argument; 0 where it is open."""
    table, best = index.table, (0, 0)
    rows = table.rows_of(graph)
    captured = {node for node, *_ in index.graphs[graph].variables} | set(index.graphs[graph].constants)
    for row in range(rows.start, rows.stop):
        if table.type_of(row) != "Placeholder" or int(table.node[row]) in captured:
            continue
        for spec in table.specs_of(row):
            if spec.shape and spec.shape[0] != UNKNOWN and spec.dtype not in {"resource", "variant"}:
                best = max(best, (spec.elements, spec.shape[0]))
    return best[1]


def _need(view: SessionView, index: GraphIndex, memory: StepMemory, traced: Traced, last: BatchSeen | None) -> StepNeed:
    tensors = memory.tensors[:TENSORS]
    places = [_maker(view, index, tensors[0].row)] if tensors else []
    if traced.stack:
        file, function, line = traced.stack[-1]
        called = view.place(file, line, function=function)
        places.insert(0 if memory.grown > memory.fixed else len(places), called)
    largest, names = _largest(index, memory)
    whole = last is not None and last.steps == 1 and last.samples == last.size and last.size > WHOLE
    owner = MemoryOwner(
        kind="step",
        largest=largest,
        layers=names,
        role=ROLES.get(last.role, "") if last is not None else "",
        whole=whole,
        name=traced.function,
        bytes=memory.total * WORK_SPACE,
        count=memory.samples,
        unit="samples",
        where=tuple(dict.fromkeys(place for place in places if place is not None)),
        tensors=tuple(_said(index, tensor) for tensor in tensors),
        per_unit=memory.per_sample * WORK_SPACE,
        fixed=memory.fixed * WORK_SPACE,
    )
    return StepNeed(memory=memory, function=traced.function, traced_ns=traced.at + traced.dur, owner=owner)


def _largest(index: GraphIndex, memory: StepMemory) -> tuple[str, str]:
    """(words, names) of the layers whose tensors take most, gradients apart: these are of the layers' inputs."""
    sums: dict[int, float] = {}
    first: dict[int, LiveTensor] = {}
    layers: dict[int, Layer] = {}
    for tensor in memory.tensors:
        layer = index.maker_of(tensor.row)[1] if tensor.grows and not index.is_gradient(tensor.row) else None
        if layer is None or not layer.line:
            continue
        layers[layer.id] = layer
        sums[layer.id] = sums.get(layer.id, 0.0) + tensor.bytes
        first.setdefault(layer.id, tensor)
    ranked = sorted((one for one in sums if sums[one] >= MIN_LAYER * memory.total), key=lambda one: -sums[one])[:LAYERS]
    if not ranked:
        return "", ""
    spec = next(iter(index.table.specs_of(first[ranked[0]].row)), None)
    shape = [memory.samples if n == UNKNOWN else n for n in spec.shape or ()] if spec is not None else []
    shown = f", {spec.dtype}[{','.join(map(str, shape))}]" if spec is not None else ""
    names = " and ".join(layers[one].name for one in ranked)
    return f"{sum(sums[one] for one in ranked) / (1 << 20):,.0f} MiB of it for {names}{shown}", names


def _maker(view: SessionView, index: GraphIndex, row: int) -> Place | None:
    """The line that made a node: where its layer was built, else the user's line in the trace."""
    place, layer = index.maker_of(row)
    if layer is not None and layer.line:
        return view.place(layer.file, layer.line, function=layer.function)
    return view.place(place[0], place[2], function=place[1]) if place is not None else None


def _said(index: GraphIndex, tensor: LiveTensor) -> str:
    """``conv2d_1: 288 MiB float32[256,96,96,32] of Conv2D``."""
    table = index.table
    _, layer = index.maker_of(tensor.row)
    spec = next(iter(table.specs_of(tensor.row)), None)
    shape = ",".join("batch" if n == UNKNOWN else str(n) for n in spec.shape or ()) if spec is not None else ""
    kind = table.type_of(tensor.row)
    name = layer.name if layer is not None else table.name_of(tensor.row)[-60:]
    return f"{name}: {tensor.bytes / (1 << 20):,.0f} MiB {spec.dtype if spec is not None else ''}[{shape}] of {kind}"
