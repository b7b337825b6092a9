"""Axes of tensors along which all elements are copies of one: made by Tile, BroadcastTo, a stack of one tensor ...

Copies are followed forwards from the node that makes them, through everything that keeps them: views, casts, ops of
each element, products, solves, look-ups, loops. The search stops at an op that is not modelled.

The variables of a loop are copies if they are before it and each iteration leaves them copies: that is assumed, and the
assumption weakened by what the body makes of it until it holds.

Serves wasteful_operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.causes.graph import invariant_work_in_loop
from stepscope.causes.graph.operands import inward
from stepscope.causes.graph.operands.axis_parts import AxisPart, copies, joined, leading, regrouped, size_of, together
from stepscope.derive.graph.independent_loops import WHILE
from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import UNKNOWN, attributes_of
from stepscope.wire.replayed_ops import CONSTANT, ELEMENTWISE, REDUCTIONS, VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.causes.graph.invariant_work_in_loop import LoopVariable
    from stepscope.causes.graph.operands.axis_parts import Axes, Axis, Key
    from stepscope.causes.graph.operands.step_inputs import StepInput
    from stepscope.derive.graph.index import GraphIndex

_MAKERS = frozenset({"Tile", "BroadcastTo", "Fill", "Pack", "ConcatV2"})
_INTO_LISTS = frozenset({"TensorListFromTensor", "TensorListSetItem"})
_LISTS = _INTO_LISTS | {"TensorListGetItem", "TensorListStack"}
_EMPTY_LIST = "TensorListReserve"
MAX_ASSUMPTIONS = 4
"""Times that what is assumed of a loop's variables may be weakened."""
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
    for row in inward.through(index, graphs, found.known):
        found.look(row)
        if index.table.type_of(row) in WHILE:
            found.loop(row)
    return found.known


def _of_batches(index: GraphIndex, inputs: Mapping[Key, StepInput]) -> dict[Key, Axes]:
    """Inputs whose rows are copies. Of those whose copies stand in no order one: two need not have the same order."""
    made: dict[Key, Axes] = {}
    mixed: dict[int, Key] = {}
    for (row, slot), one in inputs.items():
        size = (index.table.specs_of(row)[slot].shape or (UNKNOWN,))[0]
        if one.copies <= 1 or size == 1:
            continue
        known = max(one.distinct, size // one.copies) if size != UNKNOWN else one.distinct or UNKNOWN
        copied = AxisPart(one.copies, row)
        if one.every:
            first: Axis = (AxisPart(size, row),)
        elif one.block:
            first = (AxisPart(known), copied)
        else:
            first = (copied, AxisPart(one.distinct or UNKNOWN))
            if not one.distinct:
                graph = int(index.table.graph[row])
                other = mixed.setdefault(graph, (row, slot))
                if other != (row, slot) and inputs[other].copies >= one.copies:
                    continue
                made.pop(other, None)
                mixed[graph] = row, slot
        made[row, slot] = (first, *(() if size == 1 else (AxisPart(size),) for size in one.shape))
    return made


class _Copies:
    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._table = index.table
        self.known: dict[Key, Axes] = {}

    def axes(self, key: Key) -> Axes | None:
        """The dimensions of a tensor; None if even its rank is unknown."""
        return self.known[key] if key in self.known else self._plain(key)

    def _plain(self, key: Key) -> Axes | None:
        """The dimensions of a tensor as its shape alone shows them; None if even its rank is unknown."""
        row, slot = key
        specs = self._table.specs_of(row) if row != NOT_FOUND else ()
        shape = specs[slot].shape if slot < len(specs) else None
        return None if shape is None else tuple(() if size == 1 else (AxisPart(size),) for size in shape)

    def inputs(self, row: int) -> list[Key]:
        """The tensors that a node takes."""
        return list(zip(self._table.inputs_of(row).tolist(), self._table.slots_of(row).tolist(), strict=True))

    def look(self, row: int) -> None:
        """Note of which outputs of a node axes are copies."""
        kind = self._table.type_of(row)
        inputs = self.inputs(row)
        if not inputs or (kind not in _MAKERS and not any(key in self.known for key in inputs)):
            return
        if kind in _LISTS:
            self._of_list(row, kind, inputs)
            return
        for slot in range(len(self._table.specs_of(row))):
            plain = self._plain((row, slot))
            if plain is None:
                continue
            made = self._made(row, kind, inputs, plain)
            if made is not None and len(made) == len(plain) and any(part.copied for axis in made for part in axis):
                self.known[row, slot] = made

    def loop(self, row: int) -> None:
        """Note which variables of a loop, and which of its results, are copies."""
        body = next((graph for attribute, graph in self._index.called_by(row) if attribute == "body"), NOT_FOUND)
        variables = invariant_work_in_loop.loop_variables(self._index, row, body) if body != NOT_FOUND else ()
        inputs = self.inputs(row)
        if not variables or len(variables) != len(inputs):
            return
        assumed = {one: self.known[key] for one, key in zip(variables, inputs, strict=True) if key in self.known}
        weaker: dict[LoopVariable, Axes] | None = assumed
        for _ in range(MAX_ASSUMPTIONS):
            if not weaker:
                break
            assumed = weaker
            self._in_body(body, assumed)
            weaker = {one: axes for one, old in assumed.items() if (axes := self._after(one, old))}
            if weaker == assumed:
                self._results(row, variables, assumed)
                return
        self._in_body(body, {})

    def _in_body(self, body: int, assumed: Mapping[LoopVariable, Axes]) -> None:
        """Go through a loop's body, and what it calls, with what is assumed of its arguments."""
        for inner in inward.through(self._index, [body], {}):
            for slot in range(len(self._table.specs_of(inner))):
                self.known.pop((inner, slot), None)
        self.known.update({(one.argument, 0): axes for one, axes in assumed.items()})
        for inner in inward.through(self._index, [body], self.known):
            self.look(inner)

    def _after(self, one: LoopVariable, before: Axes) -> Axes | None:
        """What is left of an assumption after an iteration; None: nothing."""
        if one.result == one.argument:
            return before
        after, plain = self.known.get((one.result, 0)), self._plain((one.argument, 0))
        made = joined([before, after], plain) if after is not None and plain else None
        return made if made is not None and copies(made) else None

    def _results(self, row: int, variables: Sequence[LoopVariable], assumed: Mapping[LoopVariable, Axes]) -> None:
        """Note what the loop gives. A list that it fills holds what each iteration puts into it."""
        for slot, (one, (given, _)) in enumerate(zip(variables, self.inputs(row), strict=True)):
            filled = given != NOT_FOUND and self._table.type_of(given) == _EMPTY_LIST
            axes = self.known.get((one.result, 0)) if filled else assumed.get(one)
            if axes is not None:
                self.known[row, slot] = axes

    def _of_list(self, row: int, kind: str, inputs: Sequence[Key]) -> None:
        """Note what the elements of a list are; a list is known by their dimensions."""
        of = inputs[-1] if kind == "TensorListSetItem" else inputs[0]
        axes, plain = self.known.get(of), self._plain((row, 0))
        if axes is None or plain is None:
            return
        if kind == "TensorListFromTensor":
            axes = axes[1:]
        elif kind == "TensorListStack":
            axes = (*plain[:1], *axes)
        if copies(axes) and (kind in _INTO_LISTS or len(axes) == len(plain)):
            self.known[row, 0] = axes

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
        first = self.axes(inputs[1 if kind == "Split" else 0])
        return self._of_one(row, kind, first, plain) if first is not None else None

    def _of_one(self, row: int, kind: str, first: Axes, plain: Axes) -> Axes | None:
        """Of a node of which only the first input is looked at."""
        if kind in VIEWS:
            return regrouped(first, plain)
        if kind in _SAME:
            return joined([first], plain)
        if kind == "StridedSlice":
            return self._sliced(row, first, plain)
        if kind == "Split":
            numbers = self.numbers(self.inputs(row)[0][0])
            cut = numbers[0] % len(first) if numbers and len(first) == len(plain) else NOT_FOUND
            return (*first[:cut], plain[cut], *first[cut + 1 :]) if cut != NOT_FOUND else None
        if kind == "Transpose" or kind in REDUCTIONS:
            return self._moved(row, kind, first, plain)
        kept = len(first) - _WITHIN[kind] if kind in _WITHIN else 1 if kind in _CONVOLUTIONS else -1
        return leading(first, plain, kept)

    def _copied(self, row: int, kind: str, inputs: Sequence[Key], plain: Axes) -> Axes | None:
        first = self.axes(inputs[0])
        if kind == "Fill":
            return tuple(tuple(AxisPart(part.size, row) for part in axis) for axis in plain)
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
                made.append((AxisPart(new, row),))
            elif kind != "Tile" or (times == old == UNKNOWN):
                made.append(before if kind != "Tile" else after)
            else:
                known = new // old if times == UNKNOWN and UNKNOWN not in (old, new) and old else times
                made.append((AxisPart(known, row), *before))
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
            mine: Axis = (AxisPart(len(parts), row),) if one else plain[at]
            return (*rest[:at], mine, *rest[at:])
        mine = (AxisPart(len(parts), row), *(every[0] or rest)[at]) if one else plain[at]
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
