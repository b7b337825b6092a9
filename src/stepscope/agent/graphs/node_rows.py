"""Nodes of one graph as lines of the log: blocks of columns, texts interned within each block.

A block stands for itself, so that a reader that begins late, or lacks one, reads the rest::

    {"t": "nodes", "at": ..., "graph": 3, "strings": [...], "node": [...], "name": [...], "type": [...], ...}

Columns are those of ``model.log.graph.NodeColumns``; text columns count through ``strings``, inputs stand one after
another with ``fan_in`` of each node. A text of ``callers`` has the lines from which a node's line was reached, the
nearest first, as ``FILE:FUNCTION:LINE;...`` with files and functions counted through ``strings``.
"""

from __future__ import annotations

import json
import struct

from stepscope.wire.replayed_ops import ATTRIBUTES, CONSTANT, MAX_INPUTS, MAX_OUTPUTS, MAX_VALUES, VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Graph = Foreign
    Op = Foreign
    Tensors = Foreign

    from stepscope.agent.graphs.node_lines import GraphNotes, NodeNotes
    from stepscope.agent.state import AgentState

BLOCK = 128
"""Nodes per block; writing one takes about 0.3 ms."""
MAX_NAME = 400
FUNCTIONS = {
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
    "While": ("body", "cond"),
    "StatelessWhile": ("body", "cond"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
}
"""Attributes by which ops call functions, by type of op."""


INTEGERS = {3: "i", 9: "q"}
"""Letters of ``struct`` by the number of a type: int32, int64. Source: TensorFlow, framework/types.proto."""
NO_VALUES = ("resource", "variant")
"""Types of tensors that are handles, not values."""


class Rows:
    """The unwritten nodes of one graph."""

    def __init__(self, state: AgentState, identity: int, lines: NodeNotes, made: GraphNotes | None) -> None:
        self._state = state
        self._identity = identity
        self._lines = lines
        self._made = made
        self._dtypes: dict[object, str] = {}
        self._begin()

    def _begin(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._lines_of: dict[int, tuple[int, int, int, int]] = {}
        """Columns file, function, line and callers of each path."""
        self._columns: dict[str, list[int]] = {
            column: []
            for column in (
                "node",
                "name",
                "type",
                "device",
                "outputs",
                "attributes",
                "file",
                "function",
                "line",
                "callers",
                "owner",
                "fan_in",
            )
        }
        self._producers: list[int] = []
        self._slots: list[int] = []

    def add(self, op: Op) -> None:
        """Add one op. Reads only what TensorFlow has at hand: makes it compute or keep nothing."""
        strings = self._strings
        columns = self._columns
        number = op._id
        columns["node"].append(number)
        for column, text in (
            ("name", op.name[:MAX_NAME]),
            ("type", op.type),
            ("device", op.device),
            ("outputs", self._specs(op.outputs)),
            ("attributes", attributes(op)),
        ):
            columns[column].append(strings.setdefault(text, len(strings)))
        path, owner = self._made.at(number) if self._made is not None else (0, 0)
        file, function, line, callers = self._columns_of(path)
        columns["file"].append(file)
        columns["function"].append(function)
        columns["line"].append(line)
        columns["callers"].append(callers)
        columns["owner"].append(owner)
        inputs = op.inputs[:MAX_INPUTS]
        columns["fan_in"].append(len(inputs))
        for tensor in inputs:
            self._producers.append(tensor.op._id)
            self._slots.append(tensor.value_index)
        if len(columns["node"]) >= BLOCK:
            self.write()

    def _columns_of(self, path: int) -> tuple[int, int, int, int]:
        known = self._lines_of.get(path)
        if known is None:
            strings = self._strings
            lines = [
                (strings.setdefault(file, len(strings)), strings.setdefault(function, len(strings)), line)
                for file, function, line in self._lines.lines_of(path)
            ]
            callers = ";".join(["%d:%d:%d" % line for line in lines[1:]])
            file, function, line = lines[0] if lines else (0, 0, 0)
            known = self._lines_of[path] = (file, function, line, strings.setdefault(callers, len(strings)))
        return known

    def _specs(self, outputs: Tensors) -> str:
        parts = []
        for tensor in outputs[:MAX_OUTPUTS]:
            dtype = tensor._dtype
            name = self._dtypes.get(dtype)
            if name is None:
                name = self._dtypes[dtype] = str(dtype.name)
            sizes, unknown = tensor._shape
            dims = "*" if unknown else ",".join(["?" if n is None or n < 0 else str(n) for n in sizes])
            parts.append("%s[%s]" % (name, dims))
        return ";".join(parts)

    def write(self) -> None:
        """Write the nodes added since the last block."""
        if not self._columns["node"]:
            return
        line: dict[str, object] = {"t": "nodes", "at": self._state.now(), "graph": self._identity}
        line.update(self._columns, strings=list(self._strings), producers=self._producers, slots=self._slots)
        self._state.log(line)
        self._begin()


def attributes(op: Op) -> str:
    """The attributes of an op that a replay needs, as JSON; "" if it has none of them."""
    names = ATTRIBUTES.get(op.type)
    if names:
        known = [(name, _plain(op, name)) for name in names]
        return json.dumps({name: value for name, value in known if value is not None}, separators=(",", ":"))
    if op.type == CONSTANT and op.outputs[0]._dtype.as_datatype_enum in INTEGERS:
        values = _numbers(op)
        return json.dumps({VALUE: values}, separators=(",", ":")) if values is not None else ""
    return ""


def _plain(op: Op, name: str) -> object:
    """The value of an attribute; None if the op has no such attribute (another version of TensorFlow)."""
    try:
        value = op.get_attr(name)
    except ValueError:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")[:MAX_NAME]
    return value[:MAX_VALUES] if isinstance(value, list) else value


def _numbers(op: Op) -> Optional[list[int]]:
    """The numbers of a constant; None if there are more than ``MAX_VALUES``."""
    sizes, unknown = op.outputs[0]._shape
    count = 1
    for size in sizes:
        count *= size if size is not None else 0
    if unknown or not 0 < count <= MAX_VALUES:
        return None
    proto = op.get_attr(VALUE)
    if proto.tensor_content:
        return list(struct.unpack("=%d%s" % (count, INTEGERS[proto.dtype]), proto.tensor_content))
    given = [int(number) for number in (proto.int_val or proto.int64_val)] or [0]
    return given + given[-1:] * (count - len(given))


def called(graph: Graph, op: Op) -> list[tuple[str, Graph]]:
    """(attribute, graph) of the functions that an op calls; functions whose graph is not at hand are left out."""
    found = []
    for attribute in FUNCTIONS.get(op.type, ()):
        value = op.get_attr(attribute)
        for function in value if isinstance(value, list) else [value]:
            known = graph._functions.get(function.name)
            inner = getattr(known, "_cached_graph", None)
            if inner is not None:
                found.append((attribute, inner))
    return found


def variables(graph: Graph) -> list[tuple[int, str, str, bool]]:
    """(number of the placeholder, name, spec, trainable) of the variables that a function captures."""
    by_handle = {}
    for reference in getattr(graph, "_weak_variables", ()):
        variable = reference()
        handle = getattr(variable, "_handle", None)
        if handle is not None:
            by_handle[id(handle)] = variable
    found = []
    for outside, inside in getattr(graph, "captures", ()):
        variable = by_handle.get(id(outside))
        if variable is not None:
            dims = variable.shape.dims
            sizes = "*" if dims is None else ",".join(["?" if d.value is None else str(d.value) for d in dims])
            spec = "%s[%s]" % (variable.dtype.base_dtype.name, sizes)
            found.append((inside.op._id, str(variable.name)[:MAX_NAME], spec, bool(variable.trainable)))
    return found


MATRIX = 2
MIN_ROWS, MIN_ELEMENTS, MAX_ELEMENTS = 256, 1 << 17, 1 << 19
"""Of a matrix that is looked at, and the most elements of it that are: 0.2 ms."""
MAX_USED = 0.1
"""Share of elements other than zero up to which a matrix is nearly empty."""
MAX_EMPTY = 16


def constants(graph: Graph) -> list[int]:
    """Numbers of the placeholders of captured tensors, whose values never change."""
    eager = [inside for outside, inside in getattr(graph, "captures", ()) if type(outside).__name__ == "EagerTensor"]
    return [inside.op._id for inside in eager if inside.dtype.name not in NO_VALUES]


def empty(graph: Graph) -> list[tuple[int, float]]:
    """(number of the placeholder, share of zeros) of captured matrices on the host that are zero nearly everywhere.

    Some rows of each are looked at, where they lie.
    """
    found: list[tuple[int, float]] = []
    for outside, inside in getattr(graph, "captures", ()):
        if type(outside).__name__ != "EagerTensor" or len(found) >= MAX_EMPTY:
            continue
        shape = inside.shape.dims or ()
        if len(shape) != MATRIX or "CPU" not in outside.device or not inside.dtype.is_floating:
            continue
        rows, columns = (size.value or 0 for size in shape)
        if rows < MIN_ROWS or rows * columns < MIN_ELEMENTS:
            continue
        part = outside._numpy_internal()[:: -(-rows * columns // MAX_ELEMENTS)]
        used = int((part != 0).sum()) / part.size
        if 0 < used <= MAX_USED:
            found.append((inside.op._id, 1 - used))
    return found
