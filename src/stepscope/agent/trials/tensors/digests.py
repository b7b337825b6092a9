"""Adds to ops of traced functions a look at their results, by the callback on op creation of TensorFlow's debugger.

The look is a Python op behind the tensor. TensorFlow runs it in each call of the function, because it is stateful; in a
graph of version 1, which runs only what is fetched, the tensor is replaced by one that waits for the look.
"""

from __future__ import annotations

import functools
import json
import operator
import sys
import zlib
from typing import TYPE_CHECKING

from stepscope.agent.core import autograph, frames
from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.tensors import uses
from stepscope.agent.trials.tensors.eager_digests import EagerDigests
from stepscope.agent.trials.tensors.watched import AS_IT_COMES, NO_CALL, OFF, WATCHING, Watched

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.trials.effect import Effect
from stepscope.agent.trials.tensors.watched import WatchedCall

MOST = 400
"""Tensors watched in one function, the inner ones included: each costs some 20 us in a run."""
MOST_IN_ALL = 4_000
LEAST_ELEMENTS = 4_096
"""Elements of a result below which an op is only watched if its type is heavy."""
NAME = "stepscope_look"
HEAVY = (
    *("MatMul", "BatchMatMul", "Einsum", "Conv", "DepthwiseConv", "SparseTensorDenseMatMul", "SparseMatMul"),
    *("Cholesky", "MatrixTriangularSolve", "MatrixSolve", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant"),
    *("Svd", "Qr", "SelfAdjointEig", "Eig", "Lu", "FFT", "IFFT", "RFFT", "IRFFT", "TopK", "UnsortedSegment"),
    *("_FusedMatMul", "_FusedConv", "CudnnRNN", "MatrixExponential", "MatrixLogarithm"),
)
"""Beginnings of types that may take long whatever the size of their result."""
VIEWS = frozenset(
    ("Identity", "IdentityN", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient", "Snapshot")
)
"""Types whose result has the bytes of their first input."""
SKIPPED = VIEWS | frozenset(
    (
        *("Const", "Placeholder", "PlaceholderWithDefault", "ReadVariableOp", "VariableV2", "VarHandleOp", "Shape"),
        *("While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "PartitionedCall"),
        *("StatefulPartitionedCall", "Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond", "RefEnter"),
        *("PyFunc", "PyFuncStateless", "EagerPyFunc", "Variable", "Assign", "AssignSub", "AssignAdd", "RefSwitch"),
        *("ResourceGather", "IteratorGetNext", "OptionalGetValue", "SymbolicGradient", "RefExit", "RefMerge"),
    )
)
COMMUTATIVE = frozenset(("Add", "AddV2", "Mul", "Maximum", "Minimum", "SquaredDifference"))
"""Types that TensorFlow merges whatever the order of their inputs."""
INPUTS = frozenset(("IteratorGetNext", "OptionalGetValue"))
"""Types that take a batch from an iterator."""
KEPT = ("transpose_a", "adj_x", "equation", "ksize")
"""Attributes from which the work of an op is known (``derive.optrace.kernels.op_work``)."""
OF_DATASETS = ("Dataset_", "scratch_graph", "generator_")
"""Beginnings of names of graphs that no step runs: functions of tf.data, Keras' graphs of shapes."""
DEPTH = 400
LARGE = 4_096
"""Bytes of an attribute that is not read: another op's is taken to be different."""


class Graph:
    """What is known about one graph."""

    __slots__ = ("constants", "looks", "numbers", "root", "unique", "values")

    def __init__(self, root: Optional[Graph]) -> None:
        self.root = root or self
        """That of the outermost function."""
        self.looks = 0
        """Tensors watched, in the outermost graph and those in it."""
        self.numbers: dict[str, int] = {}
        """Name of a tensor -> number of what is watched: itself, or what it is a view of."""
        self.values: dict[str, int] = {}
        """Name of a tensor -> the same number for the same expression."""
        self.constants: set[str] = set()
        """Names of tensors that TensorFlow computes once, before it runs the graph."""
        self.unique = 0


class Digests:
    """All tensors that are watched."""

    def __init__(self, effect: Effect) -> None:
        self._effect = effect
        self.call: WatchedCall = NO_CALL
        """The call that runs."""
        self.off = False
        """Whether ops are made that are ours."""
        self.watched: list[Watched] = []
        self.eager = EagerDigests()
        self.left_out = 0
        """Tensors beyond the limits."""
        self._graphs = WeakIds()
        self._alive: list[Foreign] = []
        """Graphs with watched tensors, until it is known which of these are needed."""

    def made(
        self,
        op_type: str,
        inputs: Foreign,
        attrs: Foreign,
        outputs: Foreign,
        op_name: Foreign = None,
        graph: Foreign = None,
    ) -> Foreign:
        """The callback: an op of a graph was made. Returns the tensors that take the place of its results, or None."""
        del op_name
        replaced: Foreign = None
        if outputs and not self.off:
            with self._effect.wall:
                if graph is not None:
                    replaced = self._made(op_type, inputs, attrs, outputs, graph)
                elif op_type.startswith(HEAVY):
                    self._ran_eagerly(op_type, inputs, outputs[0])
        return replaced

    def _ran_eagerly(self, op_type: str, inputs: Foreign, tensor: Foreign) -> None:
        if self.call is NO_CALL and _is_numeric(tensor):
            new = self.eager.see(op_type, inputs, tensor, len(self.watched) + 1)
            if new is not None:
                self.watched.append(new)
                self._effect.took()

    def _made(self, op_type: str, inputs: Foreign, attrs: Foreign, outputs: Foreign, graph: Foreign) -> Foreign:
        known = self._known(graph)
        if known is None:
            return None
        op = outputs[0].op
        _note(known, op_type, op, inputs, attrs, outputs)
        if not self._is_wanted(op_type, outputs, known):
            return None
        chosen = outputs if op_type in INPUTS else outputs[:1]
        results = [self._watch(op_type, op, inputs, tensor, known, graph) for tensor in chosen]
        return [*results, *outputs[len(results) :]] if any(map(operator.is_not, results, chosen)) else None

    def _known(self, graph: Foreign) -> Optional[Graph]:
        found = self._graphs.get(graph)
        if found is None:
            outer = getattr(graph, "outer_graph", None)
            inside = outer is not None and hasattr(outer, "outer_graph")
            parent = self._known(outer) if inside else None
            name = str(getattr(graph, "name", ""))
            skipped = name.startswith(OF_DATASETS) or (inside and parent is None)
            found = False if skipped else Graph(parent.root if parent is not None else None)
            self._graphs.set(graph, found)
            if found:
                self._alive.append(graph)
        return found or None

    def _is_wanted(self, op_type: str, outputs: Foreign, known: Graph) -> bool:
        if op_type in INPUTS:
            return True
        tensor = outputs[0]
        if op_type in SKIPPED or tensor.name in known.constants or not _is_numeric(tensor):
            return False
        if not op_type.startswith(HEAVY):
            elements = tensor.shape.num_elements()
            if elements is not None and elements < LEAST_ELEMENTS:
                return False
        if known.root.looks >= MOST or len(self.watched) >= MOST_IN_ALL:
            self.left_out += 1
            return False
        return True

    def _watch(
        self, op_type: str, op: Foreign, inputs: Foreign, tensor: Foreign, known: Graph, graph: Foreign
    ) -> Foreign:
        if not _is_numeric(tensor):
            return tensor
        known.root.looks += 1
        watched = Watched(len(self.watched) + 1, op_type, str(op.name), str(tensor.dtype.name))
        self.watched.append(watched)
        watched.static = _static(op, inputs, known, tensor)
        known.numbers[tensor.name] = watched.number
        seen = self._see_input if op_type in INPUTS else self._see
        look = self._look(functools.partial(seen, watched), tensor)
        self._effect.took()
        if getattr(graph, "_add_control_dependencies", False):
            return tensor
        with graph.control_dependencies([look]):
            replaced = sys.modules["tensorflow"].identity(tensor, name=NAME + "_at")
        for kept in (known.numbers, known.values):
            kept[replaced.name] = kept.get(tensor.name, 0)
        return replaced

    def _look(self, seen: Foreign, tensor: Foreign) -> Foreign:
        tensorflow = sys.modules["tensorflow"]
        with tensorflow.device("/cpu:0"):
            look = sys.modules["tensorflow.python.ops.script_ops"].numpy_function(seen, [tensor], [], name=NAME)
        return getattr(look, "op", look)

    # -- in the running graph ---------------------------------------------------------------------------------------

    def _see(self, watched: Watched, array: Foreign) -> None:
        call = self.call
        if call.phase not in (OFF, WATCHING):
            with self._effect.wall:
                watched.see(call, array)

    def _see_input(self, watched: Watched, array: Foreign) -> None:
        with self._effect.wall:
            self.see_argument(watched, self.call, array)

    def see_argument(self, watched: Watched, call: WatchedCall, array: Foreign) -> None:
        """Look at a batch."""
        if call.phase in (AS_IT_COMES, WATCHING):
            watched.see_rows(array)
        if call.phase not in (OFF, WATCHING):
            watched.see(call, array)

    # -- what is needed ---------------------------------------------------------------------------------------------

    def find_dead(self) -> None:
        """Mark tensors that nothing of the program needs: the looks alone keep them alive."""
        needed: dict[str, set[str]] = {}
        for graph in self._alive:
            if hasattr(graph, "outputs") and hasattr(graph, "control_outputs"):
                names = needed.setdefault(str(graph.name), set())
                names.update(_needed([*(tensor.op for tensor in graph.outputs), *graph.control_outputs]))
        for watched in self.watched:
            names = needed.get(str(watched.static.get("graph")), set())
            watched.alive = not names or watched.name in names
        for graph in self._alive:
            self._note_uses(graph, needed.get(str(graph.name), set()) if hasattr(graph, "name") else set())
        self._alive = []

    def _note_uses(self, graph: Foreign, needed: set[str]) -> None:
        """Note what takes each watched tensor of a function's graph."""
        if not needed:
            return
        outputs = frozenset(str(tensor.name) for tensor in graph.outputs)
        names = {str(op.name): op for op in graph.get_operations()}
        for watched in self.watched:
            if watched.alive and watched.static.get("graph") == str(graph.name) and watched.name in names:
                watched.static["uses"] = uses.of_op(names[watched.name], outputs, needed)


def _needed(ends: Iterable[Foreign]) -> set[str]:
    """Names of the ops that these ops need."""
    left, found = list(ends), set[str]()
    while left:
        op = left.pop()
        name = str(op.name)
        if name not in found and NAME not in name:
            found.add(name)
            left.extend(tensor.op for tensor in op.inputs)
            left.extend(op.control_inputs)
    return found


def _is_numeric(tensor: Foreign) -> bool:
    dtype = tensor.dtype
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex) and not dtype.is_quantized


def _note(known: Graph, op_type: str, op: Foreign, inputs: Foreign, attrs: Foreign, outputs: Foreign) -> None:
    """Note which expression an op computes, whether TensorFlow folds it, and of what it is a view."""
    stateful = op.op_def.is_stateful or op_type in ("Placeholder", "PlaceholderWithDefault")
    given = [known.values.get(tensor.name, hash(tensor.name)) for tensor in inputs]
    if op_type in COMMUTATIVE:
        given.sort()
    if stateful:
        known.unique += 1
        value = hash((known.unique, id(known)))
    else:
        value = hash((op_type, _attributes(op, attrs), tuple(given)))
    known.values.update((tensor.name, hash((value, place))) for place, tensor in enumerate(outputs))
    fixed = bool(inputs) and all(tensor.name in known.constants for tensor in inputs)
    sized = op_type in ("Shape", "Size", "Rank") and inputs[0].shape.is_fully_defined()
    if op_type == "Const" or sized or (fixed and not stateful and not op.control_inputs):
        known.constants.update(tensor.name for tensor in outputs)
    if op_type in VIEWS and inputs and inputs[0].name in known.numbers:
        known.numbers[outputs[0].name] = known.numbers[inputs[0].name]


def _attributes(op: Foreign, attrs: Foreign) -> int:
    """The same number for the same attributes."""
    found = 0
    for place in range(0, len(attrs or ()) - 1, 2):
        name, value = attrs[place], attrs[place + 1]
        large = not hasattr(value, "SerializeToString") or value.ByteSize() > LARGE
        text = op.name.encode() if large else value.SerializeToString()
        found = zlib.crc32(text, zlib.crc32(str(name).encode(), found))
    return found


def _static(op: Foreign, inputs: Foreign, known: Graph, tensor: Foreign) -> dict[str, object]:
    file, function, line = _place(sys._getframe(1))
    attributes = op.node_def.attr
    kept = {name: _value(attributes[name]) for name in KEPT if name in attributes}
    return {
        "graph": str(getattr(op.graph, "name", "")),
        "file": file,
        "in_function": function,
        "line": line,
        "attributes": json.dumps(kept) if kept else "",
        "inputs": [known.numbers.get(one.name, 0) for one in inputs][:8],
        "input_dtypes": [str(one.dtype.name) for one in inputs][:8],
        "input_shapes": [uses.shape(one) for one in inputs][:8],
        "expression": "%016x" % (known.values.get(tensor.name, 0) & (2**64 - 1)),
    }


def _value(attribute: Foreign) -> object:
    kind = attribute.WhichOneof("value")
    if kind == "b":
        return bool(attribute.b)
    return list(attribute.list.i) if kind == "list" else attribute.s.decode("utf-8", "replace")


def _place(frame: Optional[FrameType]) -> tuple[str, str, int]:
    """(file, function, line) of the innermost user code."""
    for _ in range(DEPTH):
        if frame is None:
            break
        code, line = frame.f_code, frame.f_lineno or 0
        if frames.is_own(code.co_filename):
            return frames.absolute(code.co_filename), frames.function_name(code), line
        if autograph.PREFIX in code.co_filename:
            origin = autograph.origins().get((code.co_filename, line))
            if origin is not None and frames.is_own(str(origin[0])):
                return frames.absolute(str(origin[0])), str(origin[2] or ""), int(origin[1])
        frame = frame.f_back
    return "", "", 0
