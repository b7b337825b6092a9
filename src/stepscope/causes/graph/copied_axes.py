"""Axes of tensors along which all elements are copies of one: made by Tile, BroadcastTo, a stack of one tensor ...

Copies are followed forwards from the node that makes them, through everything that keeps them: views, casts, ops of
each element, products, solves, look-ups. What is not known about an op ends the search.

Serves wasteful_operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from stepscope.causes.graph import invariant_work_in_loop
from stepscope.causes.graph.axis_parts import Part, joined, leading, regrouped, size_of, together
from stepscope.derive.graph.independent_loops import ARGUMENT, WHILE
from stepscope.derive.graph.index import CALLING, NOT_FOUND
from stepscope.model.log.graph import UNKNOWN, attributes_of
from stepscope.wire.replayed_ops import CONSTANT, ELEMENTWISE, REDUCTIONS, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stepscope.causes.graph.axis_parts import Axes, Axis, Key
    from stepscope.causes.graph.step_inputs import StepInput
    from stepscope.derive.graph.index import GraphIndex

T = TypeVar("T")

_MAKERS = frozenset({"Tile", "BroadcastTo", "Fill", "Pack", "ConcatV2"})
VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze"})
_SAME = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot", "Cast", "CheckNumerics", "Slice"}) | {
    "Softmax",
    "LogSoftmax",
    "LRN",
}
"""Types that keep copies along each axis of their first input."""
BATCHED = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
SOLVES = frozenset({"MatrixSolve", "MatrixTriangularSolve", "MatrixSolveLs"})
_MATRIX = 2
_MATRICES = frozenset({"Cholesky", "MatrixInverse", "Qr", "Svd", "Lu", "SelfAdjointEigV2", "MatrixLogarithm"}) | {
    "MatrixExponential",
    "MatrixSquareRoot",
    "MatrixDeterminant",
    "LogMatrixDeterminant",
}
_WITHIN = dict.fromkeys(_MATRICES, _MATRIX) | dict.fromkeys(("FFT", "IFFT", "RFFT", "IRFFT", "TopKV2"), 1)
"""Types that work on each matrix of the last two axes, or each line of the last."""
_CONVOLUTIONS = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MaxPool", "AvgPool"})
"""Types that work on each element of the first axis."""


def build(index: GraphIndex, inputs: Mapping[Key, StepInput]) -> dict[Key, Axes]:
    """The tensors of the steps' graphs that are copies along some axis. ``inputs``: what their batches hold."""
    found = _Copies(index)
    found.known.update(_of_batches(index, inputs))
    graphs = [graph for graph in index.graphs if graph not in index.caller and not index.of_data(graph)]
    for row in inward(index, graphs, found.known):
        found.look(row)
    return found.known


def inward(index: GraphIndex, graphs: Iterable[int], known: dict[Key, T]) -> Iterator[int]:
    """Rows of graphs and of those that they call, each once. What is ``known`` of a tensor holds of its argument."""
    todo, seen = list(graphs), set[int]()
    while todo:
        graph = todo.pop()
        if graph in seen:
            continue
        seen.add(graph)
        rows = index.table.rows_of(graph)
        for row in range(rows.start, rows.stop):
            yield row
            if index.table.type_of(row) in CALLING:
                for inner, pairs in arguments_of(index, row):
                    known.update((argument, known[key]) for argument, key in pairs if key in known)
                    todo.append(inner)


def _of_batches(index: GraphIndex, inputs: Mapping[Key, StepInput]) -> dict[Key, Axes]:
    """Inputs whose rows are copies. Of those whose copies stand in no order one: two need not have the same order."""
    made: dict[Key, Axes] = {}
    mixed: dict[int, Key] = {}
    for (row, slot), one in inputs.items():
        size = (index.table.specs_of(row)[slot].shape or (UNKNOWN,))[0]
        if one.copies <= 1 or size == 1:
            continue
        known = max(one.distinct, size // one.copies) if size != UNKNOWN else one.distinct or UNKNOWN
        copied = Part(one.copies, row)
        if one.every:
            first: Axis = (Part(size, row),)
        elif one.block:
            first = (Part(known), copied)
        else:
            first = (copied, Part(one.distinct or UNKNOWN))
            if not one.distinct:
                graph = int(index.table.graph[row])
                other = mixed.setdefault(graph, (row, slot))
                if other != (row, slot) and inputs[other].copies >= one.copies:
                    continue
                made.pop(other, None)
                mixed[graph] = row, slot
        made[row, slot] = (first, *(() if size == 1 else (Part(size),) for size in one.shape))
    return made


def arguments_of(index: GraphIndex, row: int) -> Iterator[tuple[int, list[tuple[Key, Key]]]]:
    """The graphs that a node calls, each with pairs of an argument and the tensor that the node hands to it.

    Of a loop only those that each iteration leaves as they are.
    """
    table = index.table
    for attribute, graph in index.called_by(row):
        rows = table.rows_of(graph)
        arguments = [r for r in range(rows.start, rows.stop) if table.type_of(r) == ARGUMENT]
        inputs = list(zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True))
        if table.type_of(row) in WHILE:
            body = graph if attribute == "body" else NOT_FOUND
            kept = invariant_work_in_loop.kept(index, row, body) if body != NOT_FOUND else frozenset()
        else:
            kept = frozenset(arguments)
            inputs = inputs[len(inputs) - len(arguments) :]  # before them stands what a branch depends on
        given = zip(arguments, inputs, strict=True) if len(inputs) == len(arguments) else ()
        yield graph, [((argument, 0), key) for argument, key in given if argument in kept]


class _Copies:
    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._table = index.table
        self.known: dict[Key, Axes] = {}

    def axes(self, key: Key) -> Axes | None:
        """The dimensions of a tensor; None if even its rank is unknown."""
        if key in self.known:
            return self.known[key]
        row, slot = key
        specs = self._table.specs_of(row) if row != NOT_FOUND else ()
        shape = specs[slot].shape if slot < len(specs) else None
        return None if shape is None else tuple(() if size == 1 else (Part(size),) for size in shape)

    def inputs(self, row: int) -> list[Key]:
        """The tensors that a node takes."""
        return list(zip(self._table.inputs_of(row).tolist(), self._table.slots_of(row).tolist(), strict=True))

    def look(self, row: int) -> None:
        """Note of which outputs of a node axes are copies."""
        kind = self._table.type_of(row)
        inputs = self.inputs(row)
        if not inputs or (kind not in _MAKERS and not any(key in self.known for key in inputs)):
            return
        for slot in range(len(self._table.specs_of(row))):
            plain = self.axes((row, slot))
            if plain is None:
                continue
            made = self._made(row, kind, inputs, plain)
            if made is not None and len(made) == len(plain) and any(part.copied for axis in made for part in axis):
                self.known[row, slot] = made

    def _made(self, row: int, kind: str, inputs: Sequence[Key], plain: Axes) -> Axes | None:
        """The dimensions of a node's output; ``plain``: as its shape alone shows them."""
        if kind in _MAKERS:
            return self._copied(row, kind, inputs, plain)
        if kind in ELEMENTWISE:
            return joined([self.axes(key) for key in inputs], plain)
        if kind == "Einsum":
            return self._einsum(row, [self.axes(key) for key in inputs], plain)
        if kind == "MatMul" or kind in BATCHED or kind in SOLVES:
            return self._product(row, kind, inputs, plain)
        if kind in {"GatherV2", "ResourceGather"}:
            return self._gathered(row, kind, inputs, plain)
        first = self.axes(inputs[0])
        return self._of_one(row, kind, first, plain) if first is not None else None

    def _of_one(self, row: int, kind: str, first: Axes, plain: Axes) -> Axes | None:
        """Of a node of which only the first input is looked at."""
        if kind in VIEWS:
            return regrouped(first, plain)
        if kind in _SAME:
            return joined([first], plain)
        if kind == "StridedSlice":
            return self._sliced(row, first, plain)
        if kind == "Transpose" or kind in REDUCTIONS:
            return self._moved(row, kind, first, plain)
        kept = len(first) - _WITHIN[kind] if kind in _WITHIN else 1 if kind in _CONVOLUTIONS else -1
        return leading(first, plain, kept)

    def _copied(self, row: int, kind: str, inputs: Sequence[Key], plain: Axes) -> Axes | None:
        first = self.axes(inputs[0])
        if kind == "Fill":
            return tuple(tuple(Part(part.size, row) for part in axis) for axis in plain)
        if kind in {"Pack", "ConcatV2"}:
            return self._stacked(row, kind, inputs, plain)
        if first is None:
            return None
        own = ((),) * (len(plain) - len(first)) + first
        numbers = self.numbers(inputs[1][0]) if kind == "Tile" else None
        made = []
        for i, (before, after) in enumerate(zip(own, plain, strict=True)):
            old, new = size_of(before), size_of(after)
            times = numbers[i] if numbers and len(numbers) == len(own) else UNKNOWN
            if times == 1 or (old == new and old != UNKNOWN) or not after:
                made.append(before)
            elif not before:
                made.append((Part(new, row),))
            elif kind != "Tile" or (times == old == UNKNOWN):
                made.append(before if kind != "Tile" else after)
            else:
                known = new // old if times == UNKNOWN and UNKNOWN not in (old, new) and old else times
                made.append((Part(known, row), *before))
        return tuple(made)

    def _stacked(self, row: int, kind: str, inputs: Sequence[Key], plain: Axes) -> Axes | None:
        parts = list(inputs) if kind == "Pack" else list(inputs[:-1])
        every = [self.axes(key) for key in parts]
        if kind == "Pack":
            at = self._attribute(row, "axis")
        else:
            numbers = self.numbers(inputs[-1][0])
            at = numbers[0] if numbers else None
        if at is None or not parts or not -len(plain) <= at < len(plain):
            return None
        at %= len(plain)
        rest = joined(every, plain[:at] + plain[at + 1 :] if kind == "Pack" else plain)
        if rest is None:
            return None
        one = len(set(parts)) == 1 and len(parts) > 1
        if kind == "Pack":
            mine: Axis = (Part(len(parts), row),) if one else plain[at]
            return (*rest[:at], mine, *rest[at:])
        mine = (Part(len(parts), row), *(every[0] or rest)[at]) if one else plain[at]
        return (*rest[:at], mine, *rest[at + 1 :])

    def _product(self, row: int, kind: str, inputs: Sequence[Key], plain: Axes) -> Axes | None:
        one, two = self.axes(inputs[0]), self.axes(inputs[1]) if len(inputs) > 1 else None
        if one is None or two is None or min(len(one), len(two)) < _MATRIX:
            return None
        batch = joined([one[:-_MATRIX], two[:-_MATRIX]], plain[:-_MATRIX])
        if batch is None:
            return None
        if kind in SOLVES:
            return (*batch, plain[-2], two[-1])
        left = "transpose_a" if kind == "MatMul" else "adj_x"
        right = "transpose_b" if kind == "MatMul" else "adj_y"
        return (*batch, one[-1 if self._flag(row, left) else -2], two[-2 if self._flag(row, right) else -1])

    def _einsum(self, row: int, every: Sequence[Axes | None], plain: Axes) -> Axes | None:
        text = str(_json(attributes_of(self._table, row)).get("equation", "")).replace(" ", "")
        left, _, right = text.partition("->")
        terms = left.split(",")
        if len(terms) != len(every) or len(right) != len(plain) or "." in text:
            return None
        of: dict[str, list[Axis]] = {}
        for labels, axes in zip(terms, every, strict=True):
            if axes is None or len(labels) != len(axes):
                return None
            for label, axis in zip(labels, axes, strict=True):
                of.setdefault(label, []).append(axis)
        return tuple(together(of.get(label, []), axis) for label, axis in zip(right, plain, strict=True))

    def _gathered(self, row: int, kind: str, inputs: Sequence[Key], plain: Axes) -> Axes | None:
        ids = self.axes(inputs[1])
        if ids is None or self._attribute(row, "batch_dims"):
            return None
        if kind == "ResourceGather":
            return (*ids, *plain[len(ids) :])
        rows, numbers = self.axes(inputs[0]), self.numbers(inputs[-1][0])
        if rows is None or not numbers or not 0 <= numbers[0] < len(rows):
            return None
        return (*rows[: numbers[0]], *ids, *rows[numbers[0] + 1 :])

    def _sliced(self, row: int, first: Axes, plain: Axes) -> Axes | None:
        new, gone, dots = (
            self._attribute(row, f"{name}_mask") or 0 for name in ("new_axis", "shrink_axis", "ellipsis")
        )
        begin = self.axes(self.inputs(row)[1])
        count = size_of(begin[0]) if begin else UNKNOWN
        if count == UNKNOWN:
            return None
        made: list[Axis] = []
        at = 0
        for i in range(count):
            if dots >> i & 1:
                later = sum(1 for j in range(i + 1, count) if not new >> j & 1)
                made += first[at : len(first) - later]
                at = len(first) - later
            elif new >> i & 1:
                made.append(())
            else:
                if not gone >> i & 1:
                    made.append(first[at] if at < len(first) else ())
                at += 1
        made += first[at:]
        return joined([tuple(made)], plain) if len(made) == len(plain) else None

    def _moved(self, row: int, kind: str, first: Axes, plain: Axes) -> Axes | None:
        """Of a transposition, or a reduction."""
        numbers = self.numbers(int(self._table.inputs_of(row)[1]))
        if numbers is None or not first:
            return None
        if kind == "Transpose":
            return tuple(first[i] for i in numbers) if sorted(numbers) == list(range(len(first))) else None
        gone = {axis % len(first) for axis in numbers}
        if len(plain) == len(first):
            return tuple(() if i in gone else axis for i, axis in enumerate(first))
        return tuple(axis for i, axis in enumerate(first) if i not in gone)

    def numbers(self, row: int) -> list[int] | None:
        """The numbers of a small constant; in a pack of numbers ``UNKNOWN`` stands for those that are not constant."""
        if row == NOT_FOUND:
            return None
        kind = self._table.type_of(row)
        if kind == CONSTANT:
            value = _json(attributes_of(self._table, row)).get(VALUE)
            return [int(v) for v in value] if isinstance(value, list) else None
        if kind == "Pack":
            each = [self.numbers(producer) for producer in self._table.inputs_of(row).tolist()]
            return [one[0] if one else UNKNOWN for one in each]
        return None

    def _flag(self, row: int, name: str) -> bool:
        return bool(_json(attributes_of(self._table, row)).get(name))

    def _attribute(self, row: int, name: str) -> int | None:
        value = _json(attributes_of(self._table, row)).get(name)
        return value if isinstance(value, int) else None


def _json(text: str) -> dict[str, object]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
