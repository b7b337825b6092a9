"""Matrices that are zero nearly everywhere, as factors of products: looking up and adding the rows needed costs less.

Such a matrix is made in the step (one-hot rows, counts of words), in a function of the input pipeline, or before: what
batches show (step_inputs), and tensors that a function captures, such as the matrix of a graph's edges. It is followed
through what keeps zeros where they are.

Serves wasteful_operands.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.graph.operands import inward, step_inputs, wasteful_work
from stepscope.causes.graph.operands.copied_axes import VIEWS
from stepscope.causes.graph.operands.wasteful_work import BALANCE, BYTES, WastefulWork
from stepscope.derive.graph.independent_loops import RESULT
from stepscope.derive.graph.index import CALLING, NOT_FOUND, PRODUCTS
from stepscope.model.log.graph import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepscope.causes.graph.operands.axis_parts import Key
    from stepscope.causes.graph.operands.step_inputs import StepInput
    from stepscope.derive.graph.full_shapes import FullShapes
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.program import InputSeen

    Form = Literal["one-hot", "multi-hot", "zeros"]

_PASSING = VIEWS | {"Identity", "StopGradient"}
_KEEPING = frozenset(
    {
        "Cast",
        "Transpose",
        "Neg",
        "Sqrt",
        "Square",
        "Abs",
        "Sign",
        "Relu",
        "Tanh",
        "Log1p",
        "Expm1",
        "RealDiv",
        "DivNoNan",
    }
)
"""Types whose output is zero where their first input is."""
_SCALING = frozenset({"Mul", "MulNoNan"})
_OVER_POSITIONS = frozenset({"Max", "Sum", "Mean", "Any"})
"""Types that make a row of many columns from one-hot rows."""
_COUNTED = "DenseBincount"
_VARIABLES = ("ReadVariable", "Variable")
MIN_COLUMNS = 64
"""Of a matrix: a product with fewer costs no more than the ops around it."""
_SURE = 0.7
_ROW = 2 * BALANCE * BYTES / 2
"""Time of looking up and adding a row, over that of multiplying it."""


class _Zeros(Struct, frozen=True):
    """A tensor that is zero nearly everywhere."""

    makers: tuple[int, ...]
    """Rows of the node that made it, or of its entry, and of those of each element after it."""
    used: float
    """Share of its elements that are not zero."""
    form: Form = "zeros"
    columns: int = 0
    """Number; 0: unknown."""
    seen: InputSeen | None = None
    """The batch that shows it."""


def build(index: GraphIndex, shapes: FullShapes, inputs: Mapping[Key, StepInput]) -> tuple[WastefulWork, ...]:
    """The products of the steps' graphs with such matrices."""
    return tuple(_Found(index, shapes, inputs).works())


class _Found:
    def __init__(self, index: GraphIndex, shapes: FullShapes, inputs: Mapping[Key, StepInput]) -> None:
        self._index = index
        self._table = index.table
        self._shapes = shapes
        self._inputs = inputs
        self._known: dict[Key, _Zeros] = {}
        for key, one in inputs.items():
            if one.zeros_ratio > 0:
                self._known[key] = _Zeros((key[0],), 1 - one.zeros_ratio, columns=prod(one.shape), seen=one.seen)
        for graph, read in index.graphs.items():
            for node, zeros in read.empty:
                for row in index.table.rows_with(graph, [node]):
                    self._known[row, 0] = _Zeros((row,), 1 - zeros)

    def works(self) -> Iterator[WastefulWork]:
        """Go through the graphs, from those that Python runs into those that they call."""
        graphs = [graph for graph in self._index.graphs if graph not in self._index.caller]
        of_data = [graph for graph in graphs if self._index.of_data(graph)]
        if self._table.of_types("OneHot", _COUNTED).size:
            for _ in self._through(of_data):
                pass
            self._from_pipeline(of_data)
        yield from self._through(graph for graph in graphs if not self._index.of_data(graph))

    def _from_pipeline(self, graphs: list[int]) -> None:
        """Note what the functions of the input pipeline make, where no batch was examined."""
        made = [(position, key) for graph in graphs for position, key in enumerate(self._results(graph))]
        for key, position, _, spec in step_inputs.entering(self._index):
            if key in self._inputs or not spec.shape:
                continue
            fits = [
                self._known.get(result)
                for at, result in made
                if at == position and self._shape(result) in {spec.shape, spec.shape[1:]}
            ]
            known = [zeros for zeros in fits if zeros is not None]
            if known and len(known) == len(fits):
                self._known[key] = max(known, key=lambda zeros: zeros.used)

    def _results(self, graph: int) -> list[Key]:
        rows = self._table.rows_of(graph)
        every = range(rows.start, rows.stop)
        used = {producer for row in every for producer in self._table.inputs_of(row).tolist()}
        return [(row, 0) for row in every if self._table.type_of(row) == RESULT and row not in used]

    def _through(self, graphs: Iterable[int]) -> Iterator[WastefulWork]:
        for row in inward.through(self._index, graphs, self._known):
            kind = self._table.type_of(row)
            if kind not in CALLING and not self._index.is_gradient(row):
                yield from self._look(row, kind)

    def _look(self, row: int, kind: str) -> Iterator[WastefulWork]:
        keys = list(zip(self._table.inputs_of(row).tolist(), self._table.slots_of(row).tolist(), strict=True))
        if kind in {"OneHot", _COUNTED}:
            self._make(row, kind)
        if not any(key in self._known for key in keys):
            return
        first = self._known.get(keys[0])
        if kind in PRODUCTS:
            yield from self._product(row, keys)
        elif kind == "ConcatV2":
            self._join(row, keys[:-1])
        elif kind in _SCALING:
            least = min((self._known[key] for key in keys if key in self._known), key=lambda zeros: zeros.used)
            self._known[row, 0] = replace(least, makers=(*least.makers, row))
        elif first is not None and kind in _OVER_POSITIONS:
            self._sum(row, keys[0], first)
        elif first is not None and kind in _PASSING:
            self._view(row, keys[0], first)
        elif first is not None and kind in _KEEPING:
            self._known[row, 0] = replace(first, makers=(*first.makers, row))

    def _make(self, row: int, kind: str) -> None:
        shape = self._shape((row, 0)) or ()
        columns = max(0, shape[-1]) if shape else 0
        if kind == "OneHot":
            self._known[row, 0] = _Zeros((row,), 1 / columns if columns else 0.0, "one-hot", columns)
        else:
            self._known[row, 0] = _Zeros((row,), 0.0, "multi-hot", columns)

    def _view(self, row: int, key: Key, zeros: _Zeros) -> None:
        before, after = self._shape(key), self._shape((row, 0))
        if before and after and zeros.columns == before[-1] != after[-1] > 0:
            form: Form = "multi-hot" if zeros.form == "one-hot" else zeros.form
            zeros = replace(zeros, columns=after[-1], form=form)
        self._known[row, 0] = zeros

    def _sum(self, row: int, key: Key, zeros: _Zeros) -> None:
        """Of one-hot rows: each column of the result may come from one of several rows."""
        before, after = self._shape(key), self._shape((row, 0))
        if not before or not after or len(after) >= len(before) or not before[-1] == after[-1] > 1:
            return
        times = prod(before) // max(1, prod(after)) if min(*before, *after) > 0 else 1
        form: Form = "multi-hot" if zeros.form == "one-hot" else zeros.form
        self._known[row, 0] = replace(zeros, makers=(*zeros.makers, row), used=zeros.used * times, form=form)

    def _join(self, row: int, keys: list[Key]) -> None:
        """Of parts side by side, each counts with its size; those that are not known are full."""
        sizes = [prod(size for size in (self._shape(key) or (0, 0))[1:]) for key in keys]
        if min(sizes) <= 0:
            return
        parts = [(size, self._known.get(key)) for size, key in zip(sizes, keys, strict=True)]
        used = sum(size * (part.used if part else 1.0) for size, part in parts) / sum(sizes)
        _, largest = max(((size, part) for size, part in parts if part), key=lambda pair: pair[0])
        self._known[row, 0] = replace(largest, used=used, form="zeros", columns=sum(sizes), seen=None)

    def _shape(self, key: Key) -> tuple[int, ...] | None:
        if key in self._inputs:
            return (UNKNOWN, *self._inputs[key].shape)
        row, slot = key
        specs = self._table.specs_of(row) if row != NOT_FOUND else ()
        return self._shapes.of(row, slot) or (specs[slot].shape if slot < len(specs) else None)

    def _product(self, row: int, keys: list[Key]) -> Iterator[WastefulWork]:
        position = next(i for i, key in enumerate(keys) if key in self._known)
        zeros = self._known[keys[position]]
        columns = zeros.columns or (self._shape(keys[position]) or (0,))[-1]
        part = self._part(row, keys, position, zeros.used)
        if columns < MIN_COLUMNS or part <= 0 or (zeros.form == "zeros" and self._fixed(row, position)):
            return
        by_category = zeros.form != "zeros" and self._by_category(row, keys, position, columns)
        yield WastefulWork(
            op=row,
            waste="by-category" if by_category else zeros.form,
            makers=zeros.makers,
            part=part,
            least=_SURE * part if zeros.form == "zeros" else part,
            columns=columns,
            used=zeros.used,
            seen=zeros.seen,
        )

    def _fixed(self, row: int, position: int) -> bool:
        """Whether the rows of the matrix are no samples: it stands on the right, such as the filters of a spectrum."""
        return position > 0 and self._table.type_of(row) != "Einsum"

    def _part(self, row: int, keys: list[Key], position: int, used: float) -> float:
        """Share of a product that looking up would save; where sizes are not known of its multiplications alone."""
        sides = [wasteful_work.matrix(self._index, self._shapes, *key) for key in keys]
        out = wasteful_work.matrix(self._index, self._shapes, row, 0)
        if not out or not all(sides) or len(sides) == 1:
            return 1 - _ROW * used
        one, two, result = prod(sides[position]), prod(sides[1 - position]), prod(out)
        inner = sqrt(one * two / result)
        moved = BALANCE * BYTES * (one + two + result)
        looked_up = BALANCE * BYTES * 2 * (used * one * two / inner + result)
        return 1 - looked_up / (2 * result * inner + moved)

    def _by_category(self, row: int, keys: list[Key], position: int, columns: int) -> bool:
        """Whether the product's rows are the columns of the matrix, and not rows of the other factor.

        If equal sizes leave it open, the looked-up factor is taken to be a variable.
        """
        other = keys[1 - position] if len(keys) > 1 else None
        if other is None or columns not in (self._shape((row, 0)) or ()):
            return False
        return columns not in (self._shape(other) or ()) or not self._is_variable(other[0])

    def _is_variable(self, row: int) -> bool:
        while self._table.type_of(row) in {*_PASSING, "Cast", "Transpose"} and len(self._table.inputs_of(row)):
            row = int(self._table.inputs_of(row)[0])
        return self._table.type_of(row).startswith(_VARIABLES)
