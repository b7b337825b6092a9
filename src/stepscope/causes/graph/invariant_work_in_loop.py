"""Work in the body of a graph's loop that gives the same result in each iteration: it reads nothing that changes.

An argument of a body stays the same if the loop captured it, or if the body returns it unchanged. A body makes its
results in order: first the counter, then each loop variable, as an ``Identity`` that nothing in the body reads; a
captured argument has none. A variable stays the same if nothing in the body writes it. A node whose type is a function
of its inputs alone gives the same result if all of its inputs do; the optimizer itself computes what depends on
constants alone.

Source: tensorflow/python/ops/while_v2.py for the form of a body; checked on graphs of TensorFlow 2.15 and 2.21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.independent_loops import ADDS, ARGUMENT, RESULT, WHILE
from stepscope.derive.graph.index import CALLING, PRODUCTS
from stepscope.model.log.graph import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stepscope.derive.graph.index import GraphIndex

_COSTLY = """
MatrixSolve MatrixSolveLs MatrixTriangularSolve TridiagonalSolve BandedTriangularSolve MatrixInverse MatrixDeterminant
LogMatrixDeterminant MatrixLogarithm MatrixSquareRoot Cholesky Lu Qr Svd SelfAdjointEigV2 Eig
Conv2D Conv3D DepthwiseConv2dNative Conv2DBackpropInput Conv3DBackpropInputV2
FFT FFT2D FFT3D IFFT IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D
TopKV2 GatherV2 ResourceGather SparseTensorDenseMatMul SparseMatMul
"""
_OTHERS = """
Abs Add AddN AddV2 BiasAdd Cast Ceil Complex ComplexAbs Conj Cos Cosh Cumprod Cumsum Div DivNoNan Elu Equal Erf Exp
Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Imag Inv IsFinite IsNan LeakyRelu Less LessEqual Log Log1p
LogicalAnd LogicalNot LogicalOr LogSoftmax Maximum Minimum Mul Neg NotEqual Pow Real RealDiv Reciprocal Relu Relu6
Round Rsqrt Select SelectV2 Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Square SquaredDifference Sub
Tan Tanh Xdivy Xlogy
All Any ArgMax ArgMin L2Loss Max Mean Min Prod Sum
BroadcastTo ConcatV2 ExpandDims Fill InvertPermutation MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV3
MatrixDiagV3 MatrixSetDiag MatrixSetDiagV3 OneHot OnesLike Pack Pad PadV2 Range Rank Reshape ReverseV2 Roll Size Slice
Split SplitV Squeeze StridedSlice Tile Transpose Unpack ZerosLike
AvgPool FusedBatchNormV3 LRN MaxPool
"""
HEAVY = PRODUCTS.union(_COSTLY.split())
"""At least one op of these types is in the reported work."""
_FREE = frozenset({ARGUMENT, RESULT, "Const", "ReadVariableOp", "StopGradient", "Shape"})
"""Types that take next to no time."""
_PURE = (HEAVY | _FREE).union(_OTHERS.split())
"""Types whose outputs depend on their inputs alone."""
_LISTS = frozenset({"TensorListReserve", "TensorListFromTensor", "TensorListGetItem", "TensorListSetItem", "NoOp"})
"""Types allowed in addition in a graph that is called without a state."""
_STATELESS = frozenset({"PartitionedCall", "StatelessWhile", "StatelessIf", "StatelessCase"})
_ANY = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})
"""Types that run Python, which may write any variable."""
_WRITES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
"""Parts of types of ops that write the variable which is their first input."""


class LoopVariable(Struct, frozen=True, kw_only=True):
    """A variable of a loop, or a tensor that the loop captures."""

    argument: int
    """Row of the body's argument."""
    result: int
    """Row of what the body returns for it; the argument's where it stays as it is."""


def loop_variables(index: GraphIndex, loop: int, body: int) -> tuple[LoopVariable, ...]:
    """In the order of the loop's inputs; empty if what the body returns is undetermined."""
    one = _Body(index, loop, body)
    results = one.results()
    if not one.complete or not results:
        return ()
    given = [*results, *one.arguments[len(results) :]]
    return tuple(
        LoopVariable(argument=argument, result=argument if one.source(result) == argument else result)
        for argument, result in zip(one.arguments, given, strict=True)
    )


class InvariantWork(Struct, frozen=True, kw_only=True):
    """Work that a loop repeats in each iteration without need."""

    loop: int
    """Row of the loop's node."""
    heavy: tuple[int, ...]
    """Rows of costly types, in order of creation."""
    nodes: frozenset[int]
    """Rows of everything that could be computed once before the loop and takes time."""
    around: frozenset[int]
    """Rows of the graph around the loop, without calls: they run as often as the loop begins."""


def build(index: GraphIndex, min_elements: int) -> tuple[InvariantWork, ...]:
    """The loops of the steps' graphs with such work on at least ``min_elements``, without those of gradients."""
    table = index.table
    found = []
    for loop in table.of_types(*WHILE).tolist():
        bodies = [graph for attribute, graph in index.called_by(loop) if attribute == "body"]
        if len(bodies) != 1 or index.is_gradient(loop) or index.of_data(int(table.graph[loop])):
            continue
        nodes = frozenset(_Body(index, loop, bodies[0]).invariant())
        heavy = tuple(sorted(row for row in nodes if table.type_of(row) in HEAVY and large(index, row, min_elements)))
        if heavy:
            rows = table.rows_of(int(table.graph[loop]))
            around = frozenset(r for r in range(rows.start, rows.stop) if table.type_of(r) not in CALLING)
            found.append(InvariantWork(loop=loop, heavy=heavy, nodes=nodes, around=around))
    return tuple(found)


def large(index: GraphIndex, row: int, min_elements: int) -> bool:
    """Whether a node works on so many elements, or an unknown number; a table used for look-ups does not count."""
    table = index.table
    rows = [row] if "Gather" in table.type_of(row) else [row, *(r for r in table.inputs_of(row).tolist() if r >= 0)]
    specs = [spec for r in rows for spec in table.specs_of(r)]
    return any(s.shape is None or UNKNOWN in s.shape or s.elements >= min_elements for s in specs)


def kept(index: GraphIndex, loop: int, body: int) -> frozenset[int]:
    """Rows of the arguments of a loop's body that are the same in each iteration."""
    one = _Body(index, loop, body)
    results = one.results()
    return frozenset(one.kept(results)) if one.complete and results else frozenset()


def followed(index: GraphIndex, rows: range, kept: Collection[int]) -> Iterator[int]:
    """Rows that depend only on ``kept`` and constants, including those of called graphs, without constants and free
    ops.
    """
    table = index.table
    varies = dict.fromkeys(kept, True)
    """For each row whether it is known only when the graph runs; constants are known before. No entry: undetermined."""
    for row in rows:
        inputs = table.inputs_of(row).tolist()
        if table.type_of(row) == "Const":
            varies[row] = False
        if not inputs or not varies.keys() >= set(inputs) or not (called := _computes(index, row)):
            continue
        varies[row] = any(varies[i] for i in inputs)
        if varies[row]:
            yield from (r for r in called if table.type_of(r) not in _FREE | CALLING | _LISTS)


def _computes(index: GraphIndex, row: int) -> list[int]:
    """The node, or what it calls, if its outputs depend on its inputs alone; else nothing."""
    kind = index.table.type_of(row)
    if kind in _PURE:
        return [row]
    if kind not in _STATELESS:
        return []
    inner = [r for _, graph in index.called_by(row) for r in index.inside(graph)]
    allowed = _PURE | _LISTS | _STATELESS
    return inner if all(index.table.type_of(r) in allowed for r in inner) else []


class _Body:
    """The graph of a loop's body."""

    def __init__(self, index: GraphIndex, loop: int, graph: int) -> None:
        self.index = index
        self.table = index.table
        rows = self.table.rows_of(graph)
        self.rows = range(rows.start, rows.stop)
        self.arguments = [row for row in self.rows if self.table.type_of(row) == ARGUMENT]
        self.complete = len(self.arguments) == len(self.table.inputs_of(loop))

    def invariant(self) -> Iterator[int]:
        """Rows, including those of called graphs, that give the same in each iteration, without constants and free
        ops.
        """
        results = self.results()
        if not self.complete or not results:
            return
        yield from followed(self.index, self.rows, self.kept(results))

    def results(self) -> list[int]:
        """The row returned by the body for each variable of the loop; empty if that is undetermined."""
        read = {i for row in self.rows for i in self.table.inputs_of(row).tolist()}
        first = next((row for row in self.rows if row not in read and self._counts(row)), None)
        if first is None:
            return []
        found = []
        for row in range(first, self.rows.stop):
            if self.table.type_of(row) != RESULT or row in read:
                break
            found.append(row)
        return found

    def _counts(self, row: int) -> bool:
        """Whether it returns the loop's counter plus one."""
        if self.table.type_of(row) != RESULT or self.source(row) == row:
            return False
        source = self.source(row)
        inputs = self.table.inputs_of(source).tolist()
        return self.table.type_of(source) in ADDS and inputs[:1] == self.arguments[:1] != []

    def source(self, row: int) -> int:
        """What a chain of ``Identity`` begins with."""
        while self.table.type_of(row) == RESULT and len(inputs := self.table.inputs_of(row)) and inputs[0] >= 0:
            row = int(inputs[0])
        return row

    def kept(self, results: list[int]) -> set[int]:
        """The arguments that are the same in each iteration; no lists, as an iteration takes from them and adds to
        them.
        """
        written = self._written()
        kept = set()
        for i, row in enumerate(self.arguments):
            dtypes = {spec.dtype for spec in self.table.specs_of(row)}
            if "variant" in dtypes or not dtypes or ("resource" in dtypes and row in written):
                continue
            if i >= len(results) or self.source(results[i]) == row:
                kept.add(row)
        return kept

    def _written(self) -> set[int]:
        """The arguments that are variables written by a node of the body, or of a graph that it calls."""
        found: set[int] = set()
        for row in self.rows:
            kind = self.table.type_of(row)
            inputs = self.table.inputs_of(row).tolist()
            if kind in _ANY:
                return set(self.arguments)
            if kind in CALLING:
                inner = [r for _, graph in self.index.called_by(row) for r in self.index.inside(graph)]
                if any(self.table.type_of(r) in _ANY for r in inner):
                    return set(self.arguments)
                changed = inputs if any(_writes(self.table.type_of(r)) for r in inner) else []
            else:
                changed = inputs[:1] if _writes(kind) else []
            sources = {self.source(i) for i in changed if i >= 0}
            # A written variable is identified by its argument; if it is not an argument, it may be any of them.
            if kind not in CALLING and changed and not sources <= set(self.arguments):
                return set(self.arguments)
            found |= sources
        return found


def _writes(kind: str) -> bool:
    return any(part in kind for part in _WRITES)
