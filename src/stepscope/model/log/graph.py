"""The nodes of the graphs that a process made, as columns: the type, inputs and outputs of each op, and the line that
made it.

A graph is a traced function, the body of a loop or a branch of a condition in one, the gradient of a function that was
differentiated in Python, or the graph of a session. Facts about a whole graph are in its ``graphread`` line
(``GraphRead``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct, field

from stepscope.model.event import Event
from stepscope.tables.records import I64

UNKNOWN = -1
"""Value for an unknown dimension, or an unknown producer of an input."""
TEXT_COLUMNS = ("name", "type", "device", "outputs", "attributes", "file", "function", "callers")
LATER_COLUMNS = frozenset({"attributes", "callers"})
"""Text columns that older sessions lack."""
CALLERS, FIELDS = "\n", "\t"
"""Between the lines of a text of the column ``callers``, and between file, function and line of each."""
_GRAPH_KEY = 1 << 32
ITEM_BYTES = {"float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "float32": 4, "int32": 4, "uint32": 4} | {
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Size of an element of each type; others have none that is known."""


class TensorSpec(Struct, frozen=True):
    """Type and static shape of one output of an op."""

    dtype: str
    """Type as TensorFlow names it: float32, resource, variant ..."""
    shape: tuple[int, ...] | None
    """Shape; None if even the rank is unknown; an unknown dimension is ``UNKNOWN``."""

    @property
    def elements(self) -> int:
        """The number of elements, with an unknown dimension counted as one; 0 for an unknown rank."""
        if self.shape is None:
            return 0
        count = 1
        for size in self.shape:
            count *= 1 if size == UNKNOWN else size
        return count


@functools.lru_cache(maxsize=65_536)
def specs(text: str) -> tuple[TensorSpec, ...]:
    """The outputs of an op from their text, ``float32[32,?];int32[]``; ``[*]`` is an unknown rank.

    Text that is not a spec (in a damaged file) is omitted.
    """
    found = (_spec(part) for part in text.split(";"))
    return tuple(spec for spec in found if spec is not None)


def _spec(part: str) -> TensorSpec | None:
    dtype, bracket, rest = part.partition("[")
    if not bracket or not rest.endswith("]"):
        return None
    dims = rest[:-1]
    if dims == "*":
        return TensorSpec(dtype, None)
    sizes = dims.split(",") if dims else []
    if not all(size == "?" or size.isdigit() for size in sizes):
        return None
    return TensorSpec(dtype, tuple(UNKNOWN if size == "?" else int(size) for size in sizes))


@functools.lru_cache(maxsize=65_536)
def callers(text: str) -> tuple[tuple[str, str, int], ...]:
    """(file, function, line) of the callers in a text of the column ``callers``, the nearest first."""
    parts = [part.split(FIELDS) for part in text.split(CALLERS)] if text else []
    return tuple((file, function, int(line)) for file, function, line in parts)


class Layer(Event, tag="layer", frozen=True, kw_only=True):
    """A Keras layer, or an optimizer or loss, made its first op; a metric was made (Keras 3)."""

    id: int
    """Id as in the column ``owner`` of the table of nodes."""
    name: str = ""
    cls: str = ""
    outer: int = 0
    """Id of the layer in whose call it was called, 0 for none; Keras 3."""
    file: str = ""
    function: str = ""
    line: int = 0
    """Line of user code that built it; 0: not seen."""


class GraphRead(Event, tag="graphread", frozen=True, kw_only=True):
    """The nodes of a graph were read; the newest line with an ``id`` counts."""

    id: int
    """Id as in the column ``graph`` of the table of nodes."""
    role: str = ""
    """Role. "function": traced; "session"; "gradient": made when Python differentiated the function ``of``; else the
    attribute by which another graph calls it: f, body, cond, then_branch, else_branch, branches."""
    of: int = 0
    """Origin: for a function the id of its ``trace`` line, for a gradient the id of the graph."""
    name: str = ""
    nodes: int = 0
    state: str = ""
    """State: "read" | "died": partly read, then dropped by the job | "capped": only part of it was read."""
    calls: tuple[tuple[int, str, int], ...] = ()
    """Calls: (node, attribute, id of the called graph)."""
    variables: tuple[tuple[int, str, str, bool], ...] = ()
    """Captured variables: (node that stands for it, name, type and shape, trainable)."""
    constants: tuple[int, ...] = ()
    """Nodes that stand for captured tensors whose values never change; not those of the graph that calls this one."""
    empty: tuple[tuple[int, float], ...] = ()
    """Large matrices among them that are zero nearly everywhere: (node, share of zeros). Since 0.1."""
    cpu_ns: int = 0
    """CPU time of reading."""
    noted_ns: int = 0
    """Time spent recording lines and layers while it was made."""


class GraphsRead(Event, tag="graphs", frozen=True, kw_only=True):
    """Number of graphs read so far, and reasons why others were not. The newest counts."""

    read: int = 0
    died: int = 0
    """Number dropped by the job before they were completely read."""
    alike: int = 0
    """Number of later traces of functions of which enough were read."""
    capped: int = 0
    left: int = 0
    """Number waiting."""
    intra_op: int = 0
    """Threads within an op that the program set; 0: TensorFlow's default. Since 0.1."""
    inter_op: int = 0
    """Ops at once that the program set; 0: TensorFlow's default. Since 0.1."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables of the environment that set TensorFlow's threads and kernels, as the program left them. Since 0.1."""


def _none() -> I64:
    return np.zeros(0, np.int64)


GraphEvent = Layer | GraphRead | GraphsRead
"""Lines about graphs."""


class GraphTable(Struct, frozen=True, kw_only=True):
    """Nodes, sorted by (graph, node). Shapes: int64[node]; string columns are indices into ``strings``."""

    graph: I64 = field(default_factory=_none)
    """Id of its graph."""
    node: I64 = field(default_factory=_none)
    """Number of the node within the graph, in the order of creation."""
    name: I64 = field(default_factory=_none)
    type: I64 = field(default_factory=_none)
    """Op type: MatMul, ReadVariableOp ..."""
    device: I64 = field(default_factory=_none)
    """Requested device; empty: any."""
    outputs: I64 = field(default_factory=_none)
    """Outputs, see ``specs``."""
    attributes: I64 = field(default_factory=_none)
    """Attributes as JSON, of types that can be replayed (``wire.replayed_ops``), and small constants; else empty."""
    file: I64 = field(default_factory=_none)
    function: I64 = field(default_factory=_none)
    line: I64 = field(default_factory=_none)
    """Line, with ``file`` and ``function``: the innermost line of user code that ran, within the trace, when the op was
    made; 0: none."""
    callers: I64 = field(default_factory=_none)
    """Lines of user code from which ``line`` was reached, see ``path_of``. Since 0.1."""
    owner: I64 = field(default_factory=_none)
    """Id of the layer, optimizer or metric (``Layer``) in whose call it was made; 0: none."""
    first_input: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    """Bounds of inputs: those of row i are ``first_input[i]`` to ``first_input[i + 1]`` of the next two. Shape:
    int64[node + 1]."""
    producers: I64 = field(default_factory=_none)
    """Row of the node that makes an input, -1 if it was not read; without control inputs. Shape: int64[input]."""
    slots: I64 = field(default_factory=_none)
    """Index of the input among the producer's outputs. Shape: int64[input]."""
    strings: Sequence[str] = ()

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.graph)

    def text(self, column: I64, row: int) -> str:
        """The string of a column at a row."""
        return self.strings[int(column[row])]

    def name_of(self, row: int) -> str:
        """The name of a node."""
        return self.text(self.name, row)

    def type_of(self, row: int) -> str:
        """The op type of a node."""
        return self.text(self.type, row)

    def specs_of(self, row: int) -> tuple[TensorSpec, ...]:
        """The outputs of a node."""
        return specs(self.text(self.outputs, row))

    def slots_of(self, row: int) -> I64:
        """Indices of its inputs among the outputs of the nodes that make them, in order."""
        found: I64 = self.slots[self.first_input[row] : self.first_input[row + 1]]
        return found

    def inputs_of(self, row: int) -> I64:
        """Rows of the nodes that make its inputs, in order."""
        found: I64 = self.producers[self.first_input[row] : self.first_input[row + 1]]
        return found

    def of_types(self, *types: str) -> I64:
        """Rows of the nodes of these op types, rising."""
        wanted = [i for i, text in enumerate(self.strings) if text in types]
        return np.flatnonzero(np.isin(self.type, wanted)).astype(np.int64)

    def rows_of(self, graph: int) -> slice:
        """The rows of one graph."""
        first, last = np.searchsorted(self.graph, [graph, graph + 1])
        return slice(int(first), int(last))

    def rows_with(self, graph: int, numbers: Sequence[int]) -> list[int]:
        """The rows of the nodes of one graph with these numbers; nodes that were not read are omitted."""
        rows = self.rows_of(graph)
        return [rows.start + int(i) for i in np.flatnonzero(np.isin(self.node[rows], numbers))]


def attributes_of(table: GraphTable, row: int) -> str:
    """The recorded attributes of a node, as JSON; "" for none."""
    return table.text(table.attributes, row) if len(table.attributes) else ""


def path_of(table: GraphTable, row: int) -> tuple[tuple[str, str, int], ...]:
    """(file, function, line) of the user code that ran within the trace when a node was made, the innermost line first;
    empty if none did. Sessions of older versions have only the innermost one.
    """
    if not table.line[row]:
        return ()
    inner = (table.text(table.file, row), table.text(table.function, row), int(table.line[row]))
    return (inner, *callers(table.text(table.callers, row) if len(table.callers) else ""))


class NodeColumns(Struct, frozen=True, kw_only=True):
    """Nodes as they were written. Shapes: [node], but for ``producers`` and ``slots``: [input]."""

    graph: I64
    node: I64
    line: I64
    owner: I64
    texts: Mapping[str, tuple[I64, Sequence[str]]]
    """For each of ``TEXT_COLUMNS``: index of each node's string, and the strings."""
    fan_in: I64
    """Number of inputs of each node."""
    producers: I64
    """Number, within the graph, of the node that makes an input."""
    slots: I64


def assemble(parts: Sequence[NodeColumns]) -> GraphTable:
    """The nodes of all parts as one table, each (graph, node) once: a later part may repeat an earlier one."""
    if not sum(len(part.graph) for part in parts):
        return GraphTable()
    strings: dict[str, int] = {}
    texts: dict[str, list[I64]] = {name: [] for name in TEXT_COLUMNS}
    for part in parts:
        for name, (codes, known) in part.texts.items():
            own = np.array([strings.setdefault(text, len(strings)) for text in known], np.int64)
            texts[name].append(own[codes])
    graph = np.concatenate([part.graph for part in parts])
    node = np.concatenate([part.node for part in parts])
    fan_in = np.concatenate([part.fan_in for part in parts])
    key, order = np.unique(graph * _GRAPH_KEY + node, return_index=True)
    first_input, inputs = _gathered(fan_in, order)
    wanted = np.concatenate([part.producers for part in parts])[inputs]
    wanted = wanted + np.repeat(graph[order] * _GRAPH_KEY, fan_in[order])
    found = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return GraphTable(
        graph=graph[order],
        node=node[order],
        line=np.concatenate([part.line for part in parts])[order],
        owner=np.concatenate([part.owner for part in parts])[order],
        **{name: np.concatenate(codes)[order] for name, codes in texts.items()},
        first_input=first_input,
        producers=np.where(key[found] == wanted, found, UNKNOWN),
        slots=np.concatenate([part.slots for part in parts])[inputs],
        strings=tuple(strings),
    )


def _gathered(counts: I64, order: I64) -> tuple[I64, I64]:
    """Bounds and positions (first, positions) of the lists in ``order``, out of consecutive lists of lengths
    ``counts``.
    """
    starts = np.concatenate([[0], np.cumsum(counts)])
    kept = counts[order]
    first = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return first, np.repeat(starts[order] - first[:-1], kept) + np.arange(int(first[-1]))
