"""Estimated cost of ops that the value trial looked at. It ranks ops; it predicts no time.

An op costs its floating-point operations or the operations that fit into the time in which its bytes are moved,
whichever is more (the roofline with a fixed ridge).
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.optrace.kernels import op_work
from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.model.log.values import FunctionWatched, ValueSeen

OPERATIONS_PER_BYTE = 5.0
"""Ridge: operations in the time of a byte to or from memory. Source: 4 to 10 on current CPUs (Williams et al., CACM
2009, and docs/benchmarks/op-limits.md); a fixed one, so that shares do not depend on the machine."""
FROM_ITERATORS = ("IteratorGetNext", "OptionalGetValue")
"""Types that take a batch from an iterator: work of the input pipeline."""
_SOLVES = ("MatrixTriangularSolve", "MatrixSolve")


class Costs(Struct, frozen=True, kw_only=True):
    """Costs of all ops of a process."""

    by_number: Mapping[int, float]
    """Operations in all calls of the trial's functions, by a value's number."""
    total: float

    def share(self, value: ValueSeen) -> float:
        """Share of an op in all that was looked at and is needed."""
        return self.by_number.get(value.number, 0.0) / self.total if self.total else 0.0


def estimate(values: Sequence[ValueSeen], functions: Sequence[FunctionWatched]) -> Costs:
    """Costs of the ops that the program needs; rare functions count as often as they are called."""
    known = {value.number: value for value in values}
    rows = _rows(values)
    calls = {one.function: one.calls for one in functions}
    costs = {
        value.number: _once(value, known, rows) * value.runs * max(1.0, calls.get(value.function, 0) / value.steps)
        for value in values
        if value.type and value.type not in FROM_ITERATORS and value.alive and value.steps
    }
    return Costs(by_number=costs, total=sum(costs.values()))


def _rows(values: Sequence[ValueSeen]) -> int:
    """The size that a batch most likely has: the first dimension of most inputs."""
    firsts = Counter(value.shape[0] for value in values if value.shape and (not value.type or not any(value.inputs)))
    return firsts.most_common(1)[0][0] if firsts else 1


def _once(value: ValueSeen, known: Mapping[int, ValueSeen], rows: int) -> float:
    """Operations of one run."""
    output = Tensor(dtype=value.dtype, shape=value.shape)
    inputs = tuple(_inputs(value, known, rows))
    moved = sum(one.elements * size_of(one.dtype) for one in (*inputs, output))
    return max(_flops(value, inputs, output), OPERATIONS_PER_BYTE * moved)


def _flops(value: ValueSeen, inputs: tuple[ReplayInput, ...], output: Tensor) -> float:
    if value.type in _SOLVES:
        return float(output.elements * (output.shape[-2] if len(output.shape) > 1 else 1))
    places = tuple((-1 - place, 0) for place in range(len(inputs)))
    node = ReplayNode(type=value.type, attributes=value.attributes, inputs=places)
    try:
        return op_work.flops(Recipe(inputs=inputs, nodes=(node,), output=output))
    except (IndexError, ValueError):  # fewer inputs or dimensions than the type has: no formula
        return 0.0


def _inputs(value: ValueSeen, known: Mapping[int, ValueSeen], rows: int) -> list[ReplayInput]:
    found = []
    for place, dtype in enumerate(value.input_dtypes):
        static = value.input_shapes[place] if place < len(value.input_shapes) else ()
        number = value.inputs[place] if place < len(value.inputs) else 0
        found.append(ReplayInput(dtype=dtype, shape=_sized(static, known.get(number), rows)))
    return found


def _sized(static: tuple[int, ...], source: ValueSeen | None, rows: int) -> tuple[int, ...]:
    """A shape with its unknown sizes filled in."""
    unknown = static.count(-1)
    if not unknown:
        return static
    if source is not None and len(source.shape) == len(static):
        return source.shape
    rest = prod(size for size in static if size != -1)
    if source is not None and unknown == 1 and rest:
        return tuple(prod(source.shape) // rest if size == -1 else size for size in static)
    return tuple(rows if size == -1 else size for size in static)
