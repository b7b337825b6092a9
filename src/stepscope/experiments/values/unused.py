"""Ops of whose results only a part is used: all consumers cut it out, and the rest need not be computed.

An op counts if each number of its result depends on its own row alone (products, elementwise ops, softmax over the last
axis) and each consumer takes a part of the result: a slice of it, rows that it gathers, an elementwise op whose own
result is cut, or an op of the gradient that also takes a tensor which is zero but for that part. Numbers that a
softmax adds up are used, whichever column is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.model.log.values import Use, ValueSeen

MOST_USED = 0.5
"""Share of a result that is used up to which the rest is claimed: models that shift a sequence by one use nearly all.
A gradient must be zero in at least the same share."""
SLACK = 0.02
"""By how much a share of zeros may miss the share that is cut off: gradients may be zero by themselves."""
SLICES = frozenset({"StridedSlice", "Slice"})
GATHERS = frozenset({"GatherV2", "Gather", "GatherNd"})
"""These may take another column for each row, which no smaller product gives: only whole rows count."""
PRODUCTS = ("MatMul", "BatchMatMul", "Einsum", "Conv", "DepthwiseConv")
SOFTMAX = frozenset({"Softmax", "LogSoftmax"})
ELEMENTWISE = frozenset(
    {
        *("Abs", "Add", "AddV2", "BiasAdd", "Cast", "Div", "Elu", "Erf", "Exp", "Expm1", "LeakyRelu", "Log", "Log1p"),
        *("Maximum", "Minimum", "Mul", "Neg", "Pow", "RealDiv", "Reciprocal", "Relu", "Relu6", "Round", "Rsqrt"),
        *("Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Square", "SquaredDifference", "Sub", "Tanh"),
        *("SelectV2", "Select", "_FusedMatMul"),
    }
)
GRADIENTS = frozenset({"gradient_tape", "gradients"})
"""Scopes in which TensorFlow makes the ops of gradients."""
DEPTH = 32


@dataclass(slots=True)
class Uses:
    """What is used of each tensor."""

    values: Sequence[ValueSeen]
    by_name: Mapping[tuple[str, str], ValueSeen] = field(init=False)
    known: Mapping[int, ValueSeen] = field(init=False)

    def __post_init__(self) -> None:
        self.by_name = {(value.graph, value.name): value for value in self.values}
        self.known = {value.number: value for value in self.values}

    def ratio(self, value: ValueSeen) -> float:
        """Share of an op's result that is used, at most; 1.0 if any use is not known to be a part."""
        cut, bounded = self._parts(value, rows=False, depth=DEPTH)
        return cut if 0.0 < cut < 1.0 and bounded <= cut + SLACK else 1.0

    def _parts(self, value: ValueSeen, *, rows: bool, depth: int) -> tuple[float, float]:
        """Share of a result that cuts take, and the largest share that an op of the gradient can use of it.

        ``rows``: only cuts that take whole rows count.
        """
        if not value.uses or not depth:
            return 1.0, 1.0
        rows = rows or value.type in SOFTMAX
        cut = bounded = 0.0
        for use in value.uses:
            taken, most = self._of_use(value, use, rows=rows, depth=depth)
            cut, bounded = min(1.0, cut + taken), max(bounded, most)
        return cut, bounded

    def _of_use(self, value: ValueSeen, use: Use, *, rows: bool, depth: int) -> tuple[float, float]:
        if use.type in SLICES | GATHERS and use.place == 0:
            return _part(use, rows=rows or use.type in GATHERS), 0.0
        taker = self.by_name.get((value.graph, use.name))
        if taker is None:
            return 1.0, 1.0
        if use.type == "Mul" and size(taker) == size(value) and _is_zero_elsewhere(taker):
            return 0.0, 1.0 - taker.zeros_ratio
        if use.type in ELEMENTWISE | SOFTMAX:
            same = size(taker) == size(value)
            return self._parts(taker, rows=rows, depth=depth - 1) if same else (1.0, 1.0)
        beside = self._beside(value, taker)
        return (0.0, 1.0 - beside.zeros_ratio) if beside is not None else (1.0, 1.0)

    def _beside(self, value: ValueSeen, taker: ValueSeen) -> ValueSeen | None:
        """The mostly zero tensor of the same rows that an op takes with a value; None if there is none."""
        tensors = (self.known[one] for one in taker.inputs if one in self.known and one != value.number)
        return next((one for one in tensors if _rows(one) == _rows(value) and _is_zero_elsewhere(one)), None)


def _part(use: Use, *, rows: bool) -> float:
    """Share of the numbers that a cut takes; 1.0 if it is not known."""
    if use.shape.count(-1) != use.of.count(-1) or (rows and use.shape[-1:] != use.of[-1:]):
        return 1.0
    whole = prod(size for size in use.of if size != -1)
    return prod(size for size in use.shape if size != -1) / whole if whole > 0 else 1.0


def _is_zero_elsewhere(value: ValueSeen) -> bool:
    """Whether it is a gradient that is mostly zero; one-hot rows and masks are, too, and use everything."""
    gradient = value.type.endswith("Grad") or any(part in GRADIENTS for part in value.name.split("/"))
    return gradient and MOST_USED <= value.zeros_ratio < 1.0


def size(value: ValueSeen) -> int:
    """How many numbers a tensor has."""
    return prod(value.shape)


def _rows(value: ValueSeen) -> int:
    """How many rows a tensor has."""
    return prod(value.shape[:-1])


def find(values: Sequence[ValueSeen], ops: Iterable[ValueSeen]) -> dict[ValueSeen, float]:
    """The share of each op's work that is needless; only ops with one are in it."""
    uses, ops = Uses(values), list(ops)
    found: dict[ValueSeen, float] = {}
    for value in ops:
        if value.type.startswith(PRODUCTS) or value.type in ELEMENTWISE | SOFTMAX:
            used = uses.ratio(value)
            if 0.0 < used <= MOST_USED:
                found[value] = 1.0 - used
    if not found:
        return {}
    cut_sizes = {size(value): ratio for value, ratio in found.items()}
    for value in ops:
        ratio = max((_of_gradient(uses, number, cut_sizes) for number in value.inputs), default=0.0)
        if value not in found and ratio and (value.type.startswith(PRODUCTS) or value.type.endswith("Grad")):
            found[value] = ratio
    return found


def _of_gradient(uses: Uses, number: int, cut_sizes: Mapping[int, float]) -> float:
    """The needless share of an op that takes the gradient of a cut result: zeros but for the part that is used."""
    value = uses.known.get(number)
    if value is None or not _is_zero_elsewhere(value):
        return 0.0
    needless = cut_sizes.get(size(value), 0.0)
    return needless if needless and value.zeros_ratio >= needless - SLACK else 0.0
