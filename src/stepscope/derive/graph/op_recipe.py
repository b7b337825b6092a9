"""How to build an op of a trace alone: its nodes with attributes, and the types, shapes and fillings of its inputs.

TensorFlow's optimizer fuses ops and replaces them by those of a library; a fused op is named after the last of its
nodes. Its recipe is the nodes as the program wrote them: alone, they are fused in the same way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import UNKNOWN, attributes_of, specs
from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor
from stepscope.wire.replayed_ops import ATTRIBUTES, CONSTANT, ELEMENTWISE, REDUCTIONS, VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.graph.full_shapes import FullShapes, Shape
    from stepscope.derive.graph.index import GraphIndex

    Source = tuple[int, int]
    """Row of a node, and which of its outputs."""

_RAN = re.compile(r"^_(?:Mkl)?(?:Native)?(?:Fused)?(?P<base>[A-Z].*?)(?P<with>WithBias|Ex)?$")
"""Source: tensorflow/core/graph/mkl_graph_util.h, core/grappler/optimizers/remapper.cc."""
_BASES = {
    **dict.fromkeys(("BatchNorm", "BatchNormV3", "FusedBatchNorm"), "FusedBatchNormV3"),
    **dict.fromkeys(("BatchNormGrad", "BatchNormGradV3"), "FusedBatchNormGradV3"),
}
"""Types whose own name begins with the word that marks a fused op."""
_TAILS = frozenset(
    {"BiasAdd", "Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid", "Add", "AddV2", "Mul", "Sub", "Maximum"}
)
"""Types that are fused with the op before them."""
_LONGEST = 4
"""Nodes between the last one of a fused op and the one that does the work."""
_SHAPES = {
    "Conv2DBackpropInput": 0,
    "Conv2DBackpropFilter": 1,
    "DepthwiseConv2dNativeBackpropInput": 0,
    "DepthwiseConv2dNativeBackpropFilter": 1,
    "Conv3DBackpropInputV2": 0,
    "Conv3DBackpropFilterV2": 1,
    "AvgPoolGrad": 0,
    "BroadcastTo": 1,
    "StridedSliceGrad": 0,
    "RandomUniform": 0,
    "RandomStandardNormal": 0,
    "TruncatedNormal": 0,
}
"""Type -> the input that is the shape of the output."""
_SIZES = {("TopKV2", 1): -1, ("UnsortedSegmentSum", 2): 0}
"""(type, input) -> the dimension of the output that the input is."""
_GIVEN = frozenset({"Transpose", "ConcatV2", "Pad", "PadV2", "MirrorPad", "Slice", "StridedSlice", "Cumsum"})
"""Types whose whole numbers do not follow from shapes."""
_DEFINITE = frozenset({"Cholesky", "MatrixInverse", "MatrixTriangularSolve"})
_OUT = {"Cast": "DstT", "ArgMax": "output_type", "ArgMin": "output_type", "BatchMatMulV3": "Tout"}
_RANDOM = {"RandomUniform": "dtype", "RandomStandardNormal": "dtype", "TruncatedNormal": "dtype"}
_ANY = 100
"""Bound of whole numbers that may be any."""
_NUMBERS = frozenset({"int32", "int64"})


class NotReplayableError(Exception):
    """Why an op cannot be built alone, as the end of a sentence."""


def base_type(ran: str) -> str:
    """The type in a program of an op that ran: ``_MklNativeFusedConv2D`` is a Conv2D."""
    match = _RAN.match(ran)
    return _BASES.get(match["base"], match["base"]) if match else ran


def build(index: GraphIndex, shapes: FullShapes, row: int, ran: str) -> Recipe:
    """The recipe of the op of type ``ran`` at the node of a row.

    Raises:
        NotReplayableError: with the reason.
    """
    if row == NOT_FOUND:
        raise NotReplayableError("its node is not known")
    kind = base_type(ran)
    rows = _chain(index, row, kind)
    if kind not in ATTRIBUTES:
        raise NotReplayableError(f"ops of type {kind} are not replayed")
    replaced = kind if len(rows) == 1 else ""
    return _Builder(index, shapes).recipe(rows, replaced)


def _chain(index: GraphIndex, row: int, kind: str) -> list[int]:
    """Rows from the node that does the work to the one that names the op."""
    found = _backwards(index, row, kind, _LONGEST)
    if found:
        return found
    own = index.table.type_of(row)
    if kind in ELEMENTWISE and own in ELEMENTWISE and not ATTRIBUTES[kind]:
        return [row]  # the optimizer replaced a division by a product, for example
    raise NotReplayableError(f"it ran as {kind}, its node is a {own}")


def _backwards(index: GraphIndex, row: int, kind: str, left: int) -> list[int]:
    own = index.table.type_of(row)
    if own == kind:
        return [row]
    if own not in _TAILS or not left:
        return []
    for producer in index.table.inputs_of(row).tolist():
        before = _backwards(index, producer, kind, left - 1) if producer != UNKNOWN else []
        if before:
            return [*before, row]
    return []


class _Builder:
    def __init__(self, index: GraphIndex, shapes: FullShapes) -> None:
        self._index = index
        self._table = index.table
        self._shapes = shapes
        self._inputs: dict[Source, tuple[int, ReplayInput]] = {}
        """Source -> (number, input)."""

    def recipe(self, rows: Sequence[int], replaced: str) -> Recipe:
        """``replaced``: type of the only node, where it ran as another than the program's."""
        nodes = tuple(self._node(rows, at, replaced) for at in range(len(rows)))
        return Recipe(
            inputs=tuple(given for _, given in self._inputs.values()), nodes=nodes, output=self._output(rows[-1])
        )

    def _node(self, rows: Sequence[int], at: int, replaced: str) -> ReplayNode:
        row = rows[at]
        kind = replaced or self._table.type_of(row)
        if kind not in ATTRIBUTES:
            raise NotReplayableError(f"ops of type {kind} are not replayed")
        sources = zip(self._table.inputs_of(row).tolist(), self._table.slots_of(row).tolist(), strict=True)
        inputs = []
        for position, (producer, slot) in enumerate(sources):
            if producer in rows[:at]:
                inputs.append((rows.index(producer), slot))
            else:
                inputs.append((-1 - self._input(row, kind, position, (producer, slot)), 0))
        if kind == "ResourceGather":
            inputs.append((-1 - self._axis(), 0))
        attributes = attributes_of(self._table, row)
        if ATTRIBUTES[kind] and not attributes:
            raise NotReplayableError("its attributes were not recorded")
        out = _OUT.get(kind) or _RANDOM.get(kind, "")
        specs = self._table.specs_of(row)
        dtype = specs[0].dtype if out and specs else ""
        return ReplayNode(type=_plain(kind), attributes=attributes, inputs=tuple(inputs), out_attr=out, out_dtype=dtype)

    def _axis(self) -> int:
        """The input that says along which axis a gather of a variable's rows goes: the first."""
        return self._inputs.setdefault((UNKNOWN, 0), (len(self._inputs), ReplayInput(dtype="int32", values=(0,))))[0]

    def _output(self, row: int) -> Tensor:
        specs = self._table.specs_of(row)
        shape = self._shapes.of(row, 0)
        if not specs or shape is None:
            raise NotReplayableError("the shape of its output is not known")
        return Tensor(dtype=specs[0].dtype, shape=shape)

    def _input(self, row: int, kind: str, position: int, source: Source) -> int:
        if source not in self._inputs:
            self._inputs[source] = len(self._inputs), self._made(row, kind, position, source)
        return self._inputs[source][0]

    def _made(self, row: int, kind: str, position: int, source: Source) -> ReplayInput:
        producer, slot = source
        if producer == UNKNOWN:
            raise NotReplayableError("an input's node was not read")
        specs = self._table.specs_of(producer)
        dtype = specs[slot].dtype if slot < len(specs) else "resource"
        if dtype in {"resource", "variant", "string"}:
            return self._variable(producer)
        shape = self._shapes.of(producer, slot)
        if shape is None:
            raise NotReplayableError("the shape of an input is not known")
        known = self._constant(producer)
        if known is None and dtype in _NUMBERS:
            known = self._worked_out(row, kind, position)
        if known is not None:
            return ReplayInput(dtype=dtype, shape=shape, values=known)
        if kind in _DEFINITE and position == 0:
            return ReplayInput(dtype=dtype, shape=shape, fill="definite")
        below = self._below(row, kind, position) if dtype in _NUMBERS else _ANY
        return ReplayInput(dtype=dtype, shape=shape, below=below)

    def _variable(self, producer: int) -> ReplayInput:
        """The table of a gather: the value of the variable whose handle is the input."""
        graph = self._index.graphs.get(int(self._table.graph[producer]))
        node = int(self._table.node[producer])
        for number, _, text, _ in graph.variables if graph is not None else ():
            if number == node:
                from_text = _spec(text)
                if from_text is not None:
                    return ReplayInput(dtype=from_text.dtype, shape=from_text.shape)
        raise NotReplayableError("an input is no tensor of known shape")

    def _constant(self, producer: int) -> tuple[int, ...] | None:
        if self._table.type_of(producer) != CONSTANT:
            return None
        values = _json(attributes_of(self._table, producer)).get(VALUE)
        return tuple(int(v) for v in values) if isinstance(values, list) else None

    def _worked_out(self, row: int, kind: str, position: int) -> tuple[int, ...] | None:
        """Whole numbers that follow from shapes; None: the op takes any, see ``_below``."""
        out = self._shapes.of(row, 0)
        if out is None:
            raise NotReplayableError("the shape of its output is not known")
        if _SHAPES.get(kind) == position:
            return out
        first = self._shape_of_input(row, 0)
        if kind in REDUCTIONS and position == 1 and first is not None:
            return _axes(first, out)
        if kind == "Tile" and position == 1 and first is not None and all(first):
            return tuple(o // f for o, f in zip(out, first, strict=True))
        if (kind, position) in _SIZES:
            return (out[_SIZES[kind, position]],)
        if kind in _GIVEN and position:
            raise NotReplayableError("the numbers of an input are not known")
        return None

    def _shape_of_input(self, row: int, position: int) -> Shape | None:
        producer = int(self._table.inputs_of(row)[position])
        if producer == UNKNOWN:
            return None
        return self._shapes.of(producer, int(self._table.slots_of(row)[position]))

    def _below(self, row: int, kind: str, position: int) -> int:
        """Bound of the whole numbers of an input."""
        if kind == "SparseSoftmaxCrossEntropyWithLogits" and position == 1:
            logits = self._shape_of_input(row, 0)
            return logits[-1] if logits else 1
        if kind in {"GatherV2", "ResourceGather"} and position == 1:
            table = self._table_shape(row)
            return min(table) if table and kind == "GatherV2" else table[0] if table else 1
        if kind == "UnsortedSegmentSum" and position == 1:
            out = self._shapes.of(row, 0)
            return out[0] if out else 1
        if kind == "OneHot" and position == 0:
            out = self._shapes.of(row, 0)
            return out[-1] if out else 1
        return _ANY

    def _table_shape(self, row: int) -> Shape:
        """Shape of the table of a gather."""
        given = self._inputs.get((int(self._table.inputs_of(row)[0]), int(self._table.slots_of(row)[0])))
        return given[1].shape if given is not None else ()


def _axes(whole: Shape, left: Shape) -> tuple[int, ...]:
    """The axes that a reduction removed, or left with one element; only where they follow from the shapes."""
    if len(left) == len(whole):
        return tuple(i for i, (a, b) in enumerate(zip(whole, left, strict=True)) if a != b)
    axes, at = [], 0
    for i, size in enumerate(whole):
        if at < len(left) and left[at] == size and len(whole) - i >= len(left) - at:
            at += 1
        else:
            axes.append(i)
    if at != len(left):
        raise NotReplayableError("the axes of the reduction are not known")
    return tuple(axes)


def _plain(kind: str) -> str:
    """The type that is replayed: a table in a variable is read like one in a tensor."""
    return "GatherV2" if kind == "ResourceGather" else kind


def _spec(text: str) -> Tensor | None:
    found = specs(text)
    if not found or found[0].shape is None or UNKNOWN in found[0].shape:
        return None
    return Tensor(dtype=found[0].dtype, shape=found[0].shape)


def _json(text: str) -> dict[str, object]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
