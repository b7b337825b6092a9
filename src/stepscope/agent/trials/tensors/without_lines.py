"""without-lines:FILE:LINE, FILE:FIRST-LAST: what these lines make in compiled functions is not computed.

Functions that a dataset maps are compiled ones, too.

Ops are made by a line if it runs while they are made, or if it has built the layer of Keras that makes them.

Each result of an op that is made there is replaced by one of its shape, filled with one number that is read from what
the op is given. So what the lines need, what needs their results, and the gradients of both are computed as before; the
ops of the lines and their own gradients are pruned by TensorFlow.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import autograph, frames
from stepscope.agent.graphs.node_lines import NOWHERE
from stepscope.agent.probes.common import shared
from stepscope.agent.probes.keras.layers import owners_of
from stepscope.agent.trials.support import FUNCTIONS
from stepscope.agent.trials.tensors import filled
from stepscope.agent.trials.tensors.digests import OF_DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

TAPES = "tensorflow.python.eager.backprop"
"""Module that puts the function into ``execute`` by which ops tell a tape how their gradients are made."""
KEPT = frozenset(
    (
        *("Const", "Placeholder", "PlaceholderWithDefault", "PlaceholderV2", "VarHandleOp", "ReadVariableOp"),
        *("Variable", "VariableV2", "ResourceGather", "ResourceGatherNd", "IteratorGetNext", "OptionalGetValue"),
        *("Shape", "ShapeN", "Size", "Rank", "Identity", "TensorListReserve", "EmptyTensorList"),
        *("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration"),
        *("LoopCond", "If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"),
        *("PartitionedCall", "StatefulPartitionedCall"),
    )
)
"""Types whose results stay: they cost nothing, run a function whose own ops are replaced, or are how a variable learns
of its gradient."""
OF_MAPS = "Dataset_map"
"""Begin of the names of graphs of functions that a dataset maps; what other functions of datasets give decides how many
elements there are."""
DEPTH = 400
"""Frames looked at for each op."""


class FileLines:
    """Lines of one file of the program."""

    def __init__(self, argument: str) -> None:
        """``argument``: FILE:LINE or FILE:FIRST-LAST. Raises ValueError if it is neither."""
        self._file, _, lines = argument.rpartition(":")
        first, _, last = lines.partition("-")
        if not (self._file and first.isdigit() and (not last or last.isdigit())):
            raise ValueError("without-lines:%s; expected FILE:LINE or FILE:FIRST-LAST" % argument)
        self._first, self._last = int(first), int(last or first)
        self._whole: dict[CodeType, bool] = {}

    def made_by(self, frame: Optional[FrameType], is_boundary: Callable[[CodeType], bool]) -> bool:
        """Whether one of the lines runs in a frame, or in one that has called it, within the outermost trace.

        ``is_boundary``: whether the frames below one of that code are inside a trace. A graph that no trace makes is
        made by all frames.
        """
        found = traced = False
        for _ in range(DEPTH):
            if frame is None:
                break
            if is_boundary(frame.f_code):
                if found:
                    return True
                traced = True
            found = found or self._runs(frame)
            frame = frame.f_back
        return found and not traced

    def built(self, place: tuple[str, str, int]) -> bool:
        """Whether one of the lines is where a layer was built."""
        return self._first <= place[2] <= self._last and self._is_file(place[0])

    def _runs(self, frame: FrameType) -> bool:
        code, line = frame.f_code, frame.f_lineno or 0
        file = code.co_filename
        if autograph.PREFIX in file:
            origin = autograph.origins().get((file, line))
            if origin is None:
                return False
            file, line = str(origin[0]), int(origin[1])
        elif not frames.is_own(file):
            return False
        if not self._is_file(frames.absolute(file)):
            return False
        return self._first <= line <= self._last or self._is_whole(code)

    def _is_file(self, path: str) -> bool:
        return path == self._file or path.endswith(os.sep + self._file.lstrip("./"))

    def _is_whole(self, code: CodeType) -> bool:
        """Whether the line is the one on which this function begins: all of it is meant."""
        known = self._whole.get(code)
        if known is None:
            first = code.co_firstlineno
            if autograph.PREFIX in code.co_filename:
                first = autograph.origin(code.co_filename, first, frames.last_line(code))[1]
            is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
            known = self._whole[code] = is_function and self._first == self._last == first
        return known


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: the creation of ops, and what a tape learns of their gradients."""
    lines = FileLines(effect.argument)
    effect.missed("no compiled function of the program has ops of %s" % effect.argument)
    fills = filled.Fills()
    return [
        (FUNCTIONS, functools.partial(_attach, effect, lines, fills)),
        (TAPES, functools.partial(_attach_tape, fills)),
    ]


def _attach(effect: Effect, lines: FileLines, fills: filled.Fills, state: AgentState, module: Foreign) -> None:
    del module
    layer, built = shared(state).lines, owners_of(state).places

    def is_meant(frame: FrameType) -> bool:
        owner = layer.owner() if layer.owner is not None else 0
        return lines.built(built.get(owner, NOWHERE)) or lines.made_by(frame, layer.is_boundary)

    def made(
        op_type: str,
        inputs: Foreign,
        attrs: Foreign,
        outputs: Foreign,
        op_name: Foreign = None,
        graph: Foreign = None,
    ) -> Foreign:
        del attrs, op_name
        if graph is None or not outputs or fills.busy or op_type in KEPT:
            return None
        with effect.wall:
            if _decides(str(getattr(graph, "name", ""))) or not is_meant(sys._getframe(1)):
                return None
            found = fills.in_place_of(inputs, outputs, graph)
            if found is None:
                effect.missed("the shapes of what %s makes are not known before it runs" % effect.argument)
                return None
            effect.took()
            return found
        return None

    context = sys.modules["tensorflow.python.eager.context"].context()
    context.add_op_callback(made)
    state.hooks.on_uninstall(functools.partial(context.remove_op_callback, made))


def _decides(graph: str) -> bool:
    """Whether a graph is of a dataset, and not of a map."""
    return graph.startswith(OF_DATASETS) and not graph.startswith(OF_MAPS)


def _attach_tape(fills: filled.Fills, state: AgentState, module: Foreign) -> None:
    """An op whose result was replaced has no gradient: that of what took its place is taken."""
    del module
    execute = sys.modules["tensorflow.python.eager.execute"]
    original = execute.record_gradient

    def record_gradient(op_name: Foreign, inputs: Foreign, attrs: Foreign, outputs: Foreign) -> None:
        if not any(fills.has(output) for output in outputs):
            original(op_name, inputs, attrs, outputs)

    state.patch(execute, "record_gradient", functools.wraps(original)(record_gradient))
