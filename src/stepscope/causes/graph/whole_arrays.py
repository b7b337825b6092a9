"""Ops of a step that process the whole of a large weight, found by its unique shape.

Serves oversized_weight_after_flatten and double_precision_in_step.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import UNKNOWN, specs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.graph import TensorSpec

Shape = tuple[int, ...]
MATRIX, IMAGES = 2, 4
"""Ranks."""
PASSES_ON = frozenset({"Identity", "Cast", "Mul", "SelectV2", "Relu", "Transpose"})
"""Types allowed between a Flatten and the product: dropout, activation, precision."""
MAX_CHAIN = 8
_REFERENCES = ("Variable", "VariableV2")
"""Types of variables of which ops get a reference, as programs without resource variables have them."""
_OPTIMIZER_OP = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]\w*$")


class Weight(Struct, frozen=True, kw_only=True):
    """A trainable variable."""

    dtype: str
    shape: Shape

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))


class FlatProduct(Struct, frozen=True, kw_only=True):
    """A product of a weight with a flattened stack of feature maps."""

    weight: Weight
    product: int
    places: int
    """Positions of the flattened maps; pooling leaves one."""
    nodes: frozenset[int]


def weights(index: GraphIndex) -> frozenset[Weight]:
    """The trainable variables with known shapes."""
    texts = {text for graph in index.graphs.values() for _, _, text, trainable in graph.variables if trainable}
    found = [spec for text in texts for spec in specs(text)[:1]]
    of_sessions = variables_of_sessions(index)
    found += [of_sessions[row] for row in _changed_by_optimizers(index) if row in of_sessions]
    return frozenset(
        Weight(dtype=spec.dtype, shape=spec.shape) for spec in found if spec.shape and UNKNOWN not in spec.shape
    )


def variables_of_sessions(index: GraphIndex) -> dict[int, TensorSpec]:
    """Row of each variable's node in the graphs of sessions -> its type and shape, as its reads show them."""
    table = index.table
    found = {row: table.specs_of(row)[0] for row in table.of_types(*_REFERENCES).tolist() if table.specs_of(row)}
    handles = set(table.of_types("VarHandleOp").tolist())
    for row in table.of_types("ReadVariableOp").tolist():
        (handle, *_) = table.inputs_of(row).tolist() or (NOT_FOUND,)
        if handle in handles and table.specs_of(row):
            found.setdefault(handle, table.specs_of(row)[0])
    return found


def _changed_by_optimizers(index: GraphIndex) -> set[int]:
    """Rows of the variables of sessions that an op of an optimizer changes."""
    table = index.table
    kinds = [text for text in table.strings if _OPTIMIZER_OP.match(text)]
    taken = (table.inputs_of(row).tolist() for row in table.of_types(*kinds).tolist())
    return {inputs[0] for inputs in taken if inputs}


def working_on(index: GraphIndex, shape: Shape) -> frozenset[int]:
    """Rows of the nodes of steps that make or read an array of the given shape."""
    table = index.table
    texts = [i for i, text in enumerate(table.strings) if any(spec.shape == shape for spec in specs(text))]
    makers = np.isin(table.outputs, texts)
    users = np.repeat(np.arange(len(table)), np.diff(table.first_input))
    candidates = np.flatnonzero((table.producers >= 0) & makers[np.maximum(table.producers, 0)])
    readers = {
        int(users[i])
        for i in candidates.tolist()
        if _shape_of(index, int(table.producers[i]), int(table.slots[i])) == shape
    }
    found = readers | set(np.flatnonzero(makers).tolist())
    return frozenset(row for row in found if not index.of_data(int(table.graph[row])))


def _shape_of(index: GraphIndex, row: int, output: int) -> Shape | None:
    outputs = index.table.specs_of(row)
    return outputs[output].shape if output < len(outputs) else None


def flat_products(index: GraphIndex, least: int) -> Iterator[FlatProduct]:
    """Products of flattened feature maps with weights of at least ``least`` elements."""
    table = index.table
    large = {w.shape: w for w in weights(index) if len(w.shape) == MATRIX and w.elements >= least}
    for row in table.of_types("MatMul").tolist() if large else ():
        if index.is_gradient(row) or index.of_data(int(table.graph[row])):
            continue
        inputs = [int(i) for i in table.inputs_of(row) if i >= 0]
        shapes = [spec.shape for i in inputs for spec in table.specs_of(i)[:1]]
        weight = next((large[s] for s in shapes if s in large), None)
        places = max((_flattened(index, i) for i in inputs), default=0)
        if weight is not None and places > 1:
            nodes = working_on(index, weight.shape)
            yield FlatProduct(weight=weight, product=row, places=places, nodes=nodes)


def _flattened(index: GraphIndex, row: int) -> int:
    """Positions of the feature maps from which a matrix was reshaped; 0 for none."""
    table = index.table
    for _ in range(MAX_CHAIN):
        inputs = [int(i) for i in table.inputs_of(row) if i >= 0]
        kind = table.type_of(row)
        if not inputs or kind not in {"Reshape", *PASSES_ON}:
            return 0
        source = inputs[1] if kind == "SelectV2" and len(inputs) > 1 else inputs[0]
        if kind == "Reshape":
            (spec, *_) = table.specs_of(source) or (None,)
            shape = spec.shape if spec is not None else None
            if shape is None or len(shape) < IMAGES or UNKNOWN in shape[1:]:
                return 0
            return int(np.prod(shape[1:-1]))
        row = source
    return 0
