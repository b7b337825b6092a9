"""without-ops:NAME[+NAME]: ops of compiled functions give ones of their shape, and nothing is computed for them.

What only these ops need is then pruned by TensorFlow; a tape still makes the ops' own gradients. It shows the most
that a way around them can bring; the value trial names them.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import FUNCTIONS
from stepscope.agent.trials.tensors.digests import OF_DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: the creation of ops."""
    names = frozenset(effect.argument.split("+"))
    if "" in names:
        raise ValueError("without-ops needs names of ops, with + between them")
    effect.missed("no compiled function of the program has an op of that name")
    return [(FUNCTIONS, functools.partial(_attach, effect, names))]


def _attach(effect: Effect, names: frozenset[str], state: AgentState, module: Foreign) -> None:
    del module

    def made(
        op_type: str,
        inputs: Foreign,
        attrs: Foreign,
        outputs: Foreign,
        op_name: Foreign = None,
        graph: Foreign = None,
    ) -> Foreign:
        del op_type, attrs
        if graph is None or not outputs or str(op_name) not in names or _is_skipped(graph):
            return None
        with effect.wall:
            return _ones(effect, str(op_name), inputs, outputs)
        return None

    context = sys.modules["tensorflow.python.eager.context"].context()
    context.add_op_callback(made)
    state.hooks.on_uninstall(functools.partial(context.remove_op_callback, made))


def _ones(effect: Effect, name: str, inputs: Foreign, outputs: Foreign) -> Foreign:
    """What takes the place of an op's first result; None if its shape is not known without computing it."""
    tensorflow = sys.modules["tensorflow"]
    tensor = outputs[0]
    shape = _shape(tensorflow, tensor, inputs)
    if shape is None or not (tensor.dtype.is_floating or tensor.dtype.is_integer):
        effect.missed("the shape of %s is not known before it runs" % name)
        return None
    effect.took()
    made = tensorflow.fill(shape, tensorflow.cast(1, tensor.dtype))
    made.set_shape(tensor.shape)
    return [made, *outputs[1:]]


def _shape(tensorflow: Foreign, tensor: Foreign, inputs: Foreign) -> Foreign:
    """The shape of a result: what is unknown of it is taken from the first input of as many dimensions."""
    if tensor.shape.rank is None:
        return None
    sizes = tensor.shape.as_list()
    if None not in sizes:
        return sizes
    near = next((one for one in inputs if one.shape.rank == len(sizes) and None in one.shape.as_list()), None)
    if near is None or sizes.count(None) > 1 or sizes[0] is not None:
        return None
    given = tensorflow.shape(near)
    return tensorflow.stack([given[place] if size is None else size for place, size in enumerate(sizes)])


def _is_skipped(graph: Foreign) -> bool:
    return str(getattr(graph, "name", "")).startswith(OF_DATASETS)
