"""Who holds a process's memory: variables of its Python, buffers of its input, what a step needs, the line that runs.

Each owner is found by its own evidence: variables by looks of the agent, buffers by tf.data's own counts, steps by the
shapes of their graphs. An owner's ``fits`` is the size up to which it would stay within the limit, if all other memory
stays as it was.

Serves MEM001, MEM004 and the report's room for larger batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.input import model_reads, stages
from stepscope.derive.python import variable_lines
from stepscope.model.log.events import DatasetMade, IteratorMade
from stepscope.model.log.graph import specs
from stepscope.model.session.replays import size_of

if TYPE_CHECKING:
    from stepscope.derive.machine.memory_use import MemoryUse
    from stepscope.derive.view import SessionView
    from stepscope.model.log.graph import Layer
    from stepscope.model.log.memory import HeldValue
    from stepscope.model.session.session import Worker
    from stepscope.tables.place import Place

OwnerKind = Literal["variable", "container", "cache", "shuffle", "buffer", "step", "variables", "asked"]
"""Kind. asked: the array or tensor that did not fit; container: a list, dictionary or other collection; cache, shuffle,
buffer: of the input; variables: of the model and its optimizer."""
WORK_SPACE = 1.25
"""What a step takes over what its tensors need: work space of kernels, batches that wait. Measured on the programs of
docs/benchmarks/out-of-memory.md: 1.2 for convolutions, 1.5 for attention."""
USABLE = {"control group": 0.97, "host": 0.97, "address space": 0.9}
"""Share of a limit that may be used: the kernel and other processes need some of it, and threads and allocators reserve
address space that they do not touch."""
TENSORS = 5
"""Largest tensors that are named."""
MILLION = 1_000_000
_MATRIX = 2
_STAGES: tuple[tuple[str, OwnerKind], ...] = (("Cache", "cache"), ("Memory", "cache"), ("Shuffle", "shuffle"))
_BUFFER: OwnerKind = "buffer"
_MADE: dict[OwnerKind, str] = {"cache": "Cache", "shuffle": "Shuffle"}
"""How the transformations begin that such stages come from."""


class MemoryOwner(Struct, frozen=True, kw_only=True):
    """One of them. Bytes."""

    kind: OwnerKind
    name: str
    """Variable, transformation of the input, or function whose graph the step runs."""
    bytes: float
    at_first: float = 0.0
    """What it held at the first look."""
    count: int = 0
    """Entries, rows, elements or samples."""
    unit: str = ""
    what: str = ""
    """What it is made of: "float32[64,224,224,3]"."""
    where: tuple[Place, ...] = ()
    function: str = ""
    tensors: tuple[str, ...] = ()
    """The largest tensors of a step: "conv2d: 288 MiB float32[256,96,96,32]"."""
    per_unit: float = 0.0
    """Bytes that one more takes."""
    copied: bool = False
    """Whether the program makes one array of a container, which takes as much again."""
    fixed: float = 0.0
    """Bytes that do not grow with the number."""
    largest: str = ""
    """Of a step: the layers whose outputs take most, in words: "432 MiB of it for conv2d, float32[8,192,192,128]"."""
    layers: str = ""
    """Their names."""
    role: str = ""
    """Of a step in which the process died: fit, evaluate or predict."""
    whole: bool = False
    """Whether all samples that this was given are one batch."""
    file: str = ""
    """File that has the variable, as the session names it."""


def variables(view: SessionView, use: MemoryUse) -> list[MemoryOwner]:
    """What variables held at the last look, the largest first."""
    if not use.looks:
        return []
    first: dict[tuple[str, str, str], int] = {}
    for look in use.looks:
        for row in look.rows:
            first.setdefault(_key(row), row.bytes if look is use.looks[0] else 0)
    found = []
    for row in use.looks[-1].rows:
        count = row.count or (row.shape[0] if row.shape else 0)
        if row.model and not row.count:
            found.append(_model_of(view, row, first[_key(row)]))
            continue
        unit = ("models" if row.model else "entries") if row.count else "rows"
        what = f"{row.dtype}[{','.join(map(str, row.shape))}]" if row.dtype else ""
        what = f"{row.model}, {what} the largest variable" if row.model else what
        found.append(
            MemoryOwner(
                kind="container" if row.count else "variable",
                name=row.name,
                bytes=float(row.bytes),
                at_first=float(first[_key(row)]),
                count=count,
                unit=unit,
                what=what,
                where=_place(view, row),
                function=row.function,
                file=row.file,
                copied=_is_copied(view, row),
                per_unit=row.bytes / count if count else 0.0,
            )
        )
    return sorted(found, key=lambda owner: -owner.bytes)


def _model_of(view: SessionView, row: HeldValue, at_first: int) -> MemoryOwner:
    """A Keras model, or another object of it, that a variable holds."""
    layer = (row.built,) if row.built is not None and row.built[0] else ()
    places = [*(view.place(file, line, function=function) for file, function, line in layer), *_place(view, row)]
    name = row.variable.rpartition(":")[0] or row.variable
    return MemoryOwner(
        kind="variables",
        name=layer_words(name.split("/")[-2] if "/" in name else name, row.layer, row.shape),
        bytes=float(row.bytes),
        at_first=float(at_first),
        unit="variables",
        where=tuple(dict.fromkeys(places)),
        tensors=(f"{name}: {row.dtype}[{','.join(map(str, row.shape))}]",),
        fixed=float(row.bytes),
    )


def layer_words(name: str, cls: str, shape: tuple[int, ...]) -> str:
    """``dense (Dense of 512 units on 131,072 inputs: 67 million weights)``, by the shape of its largest variable."""
    count = 1
    for size in shape:
        count *= size
    many = f"{count / 1e6:,.0f} million" if count >= MILLION else f"{count:,}"
    if cls == "Dense" and len(shape) == _MATRIX:
        what = f"Dense of {shape[1]:,} units on {shape[0]:,} inputs"
    elif cls == "Embedding" and len(shape) == _MATRIX:
        what = f"Embedding of {shape[0]:,} entries of {shape[1]:,} numbers"
    else:
        what = cls or f"[{','.join(map(str, shape))}]"
    return f"{name} ({what}: {many} weights)"


def _key(row: HeldValue) -> tuple[str, str, str]:
    return row.file, row.function, row.name


def _is_copied(view: SessionView, row: HeldValue) -> bool:
    source = view.source_of(row.file) if row.count and row.dtype else None
    return source is not None and variable_lines.is_copied(source, row.function, row.name)


def _place(view: SessionView, row: HeldValue) -> tuple[Place, ...]:
    """The line that makes the variable grow, or gives it its value; else the one that ran."""
    source = view.source_of(row.file)
    line = variable_lines.line_of(source, row.function, row.name) if source else 0
    line = line or row.line
    return (view.place(row.file, line, function=row.function),) if row.file and line else ()


def inputs(view: SessionView, worker: Worker) -> list[MemoryOwner]:
    """What the input held when its models were read last, by transformation, the largest first."""
    reads, _ = model_reads.read_all(worker)
    datasets = {d.id: d for d in worker.all(DatasetMade)}
    iterators = {i.id: i for i in worker.all(IteratorMade)}
    found: dict[str, MemoryOwner] = {}
    for read in {read.iterator: read for read in reads}.values():
        made = iterators.get(read.iterator)
        matched = stages.align(read.data, datasets.get(made.dataset) if made is not None else None, datasets)
        for node in read.data.nodes.values():
            if not node.buffered_bytes:
                continue
            own = matched.get(node.id, ())
            part, kind = next(((part, kind) for part, kind in _STAGES if part in node.name), ("", _BUFFER))
            if part:  # the live model has a cache as its reader and writer, which no call of the program made
                above = stages.upstream([made.dataset], datasets) if made is not None else []
                own = tuple(d for d in above if d.cls.startswith(_MADE[kind])) or own
            place = next((p for d in own if (p := view.dataset_place(d)) is not None), None)
            owner = MemoryOwner(
                kind=kind,
                name=node.name,
                bytes=float(node.buffered_bytes),
                count=node.buffered_elements,
                unit="elements",
                where=(place,) if place is not None else (),
                per_unit=node.buffered_bytes / max(1, node.buffered_elements),
            )
            known = found.get(node.name)
            if known is None or known.bytes < owner.bytes:
                found[node.name] = owner
    return sorted(found.values(), key=lambda owner: -owner.bytes)


def model_variables(view: SessionView, worker: Worker) -> MemoryOwner | None:
    """The variables of a process's largest model with those of its optimizer, as its graphs capture them."""
    if not len(worker.graphs):
        return None
    index, sizes = GraphIndex(worker), dict[str, float]()
    for graph in index.graphs.values():
        mine = {name: _spec_bytes(spec) for _, name, spec, _ in graph.variables}
        if sum(mine.values()) > sum(sizes.values()):
            sizes = mine
    if not sizes:
        return None
    total = sum(sizes.values())
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:TENSORS]
    layer, shape = _reader(index, largest[0][0])
    fit = view.fit_place() if view.steps is not None else None
    built = view.place(layer.file, layer.line, function=layer.function) if layer is not None and layer.line else None
    return MemoryOwner(
        kind="variables",
        name=layer_words(layer.name, layer.cls, shape) if layer is not None else largest[0][0],
        bytes=total,
        count=len(sizes),
        unit="variables",
        where=tuple(place for place in (built, fit) if place is not None),
        tensors=tuple(f"{name}: {size / (1 << 20):,.0f} MiB" for name, size in largest),
        fixed=total,
    )


def _reader(index: GraphIndex, variable: str) -> tuple[Layer | None, tuple[int, ...]]:
    """The layer that reads a variable, of those by whose names it is called, and the variable's shape."""
    table, found = index.table, []
    shape: tuple[int, ...] = ()
    parts = variable.split("/")
    for graph in index.graphs.values():
        for number, name, text, _ in graph.variables:
            if name != variable:
                continue
            shape = next((spec.shape or () for spec in specs(text)), ())
            rows = table.rows_of(graph.id)
            held = {r for r in range(rows.start, rows.stop) if int(table.node[r]) == number}
            readers = (r for r in range(rows.start, rows.stop) if not held.isdisjoint(table.inputs_of(r).tolist()))
            found += [layer for r in readers if (layer := index.maker_of(r)[1]) is not None]
    return next((layer for layer in found if layer.name in parts), None), shape


def _spec_bytes(text: str) -> float:
    return float(sum(spec.elements * size_of(spec.dtype) for spec in specs(text)))
