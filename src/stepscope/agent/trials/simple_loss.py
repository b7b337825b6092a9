"""simple-loss: the losses of Keras compute the mean square of what the model gives, whatever they would compute."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

MODULES = ("keras.src.losses.loss", "keras.src.losses", "tf_keras.src.losses")
"""Modules of Keras 3 and of Keras 2 with the class ``Loss``."""
OF_COMPILE = "CompileLoss"
"""The one that calls the losses of all outputs, each of which is replaced by itself."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("no loss of Keras was called")
    return [(module, functools.partial(_attach, effect)) for module in MODULES]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    cls = getattr(module, "Loss", None)
    if cls is None or cls.__module__ != module.__name__:  # Keras 3's package, whose module has it
        return

    def make(original: Foreign) -> Foreign:
        def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
            original(self, *args, **kwargs)
            with effect.wall:
                if type(self).__name__ != OF_COMPILE:
                    self.call = functools.partial(_mean_square, effect)

        return init

    replace(state, cls, "__init__", make)


def _mean_square(effect: Effect, y_true: Foreign, y_pred: Foreign) -> Foreign:  # noqa: ARG001 - the arguments of a loss
    """A value for each sample, as a loss gives it; its gradient reaches all that the model computes."""
    effect.took()
    keras = sys.modules.get("keras")
    ops = getattr(keras, "ops", None) or sys.modules["tensorflow"]
    mean = getattr(ops, "mean", None) or ops.reduce_mean
    squares = ops.square(y_pred)
    return mean(squares, axis=-1) if len(y_pred.shape) > 1 else squares
