"""small-kernels: convolutions of Keras with large kernels get kernels of 3 x 3."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

MODULES = ("keras.src.layers.convolutional.base_conv", "tf_keras.src.layers.convolutional.base_conv")
SMALL = (3, 3)
LEAST = 9
"""Positions each way from which a kernel is large: a stack of 3 x 3 that sees as far is less than half of the work.
Source: detectors/graph/large_kernel_convolution.py."""
RANK = 2


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("no convolution of Keras with a kernel of %d x %d or more" % (LEAST, LEAST))
    return [(module, functools.partial(_attach, effect)) for module in MODULES]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def build(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
            with effect.wall:
                if _is_large(self):
                    self.kernel_size = SMALL
                    effect.took()
            return original(self, *args, **kwargs)

        return build

    replace(state, getattr(module, "BaseConv", None) or module.Conv, "build", make)


def _is_large(layer: Foreign) -> bool:
    """Whether it is a convolution whose result keeps its shape with a smaller kernel, and all of whose channels mix."""
    size = tuple(layer.kernel_size)
    if len(size) != RANK or len(set(size)) != 1 or size[0] < LEAST or size[0] % 2 == 0 or layer.padding != "same":
        return False
    return layer.groups == 1 and set(layer.strides) == {1} and set(layer.dilation_rate) == {1}
