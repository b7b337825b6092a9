"""Helpers of several interventions: who calls, what a call was given, replacing a method."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.trials.effect import INSIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

TRAINER = "keras.src.backend.tensorflow.trainer"
"""Module of Keras 3 with the trainer class of TensorFlow."""
KERAS_2 = ("keras.src.engine.training", "tf_keras.src.engine.training")
"""Modules of Keras 2 with the class Model."""
DATASETS = "tensorflow.python.data.ops.dataset_ops"
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FRAMEWORKS = frozenset(("tensorflow", "keras", "tf_keras"))
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"


def trainer_class(module: Foreign) -> Foreign:
    """The class of ``module`` that fits.

    Raises:
        AttributeError: this version of Keras has another.
    """
    return module.TensorFlowTrainer if hasattr(module, "TensorFlowTrainer") else module.Model


def replace(state: AgentState, owner: Foreign, name: str, make: Callable[[Foreign], Foreign]) -> None:
    """Patch ``owner.name`` with ``make(original)``.

    Raises:
        LookupError: this version of the framework has no such function there.
    """
    original = vars(owner).get(name)
    if original is None:
        raise LookupError("%s has no %s" % (getattr(owner, "__name__", owner), name))
    state.patch(owner, name, functools.wraps(original)(make(original)))


def called_by_program() -> bool:
    """Whether the program calls the caller, or a package that it uses, not TensorFlow, Keras or our code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None or INSIDE.depth:
        return False
    file = frame.f_code.co_filename
    return frames.is_own(file) or not (file.startswith("<") or _FRAMEWORKS.intersection(file.split(os.sep)))


def is_own(function: Foreign) -> bool:
    """Whether a callable's code is the user's."""
    code = frames.code_of(function)
    return code is not None and frames.is_own(code.co_filename)


def eager() -> bool:
    """Whether the calling thread executes eagerly, not in a trace."""
    context = sys.modules.get("tensorflow.python.eager.context")
    return context is not None and bool(context.executing_eagerly())


def in_trace() -> bool:
    """Whether the calling thread makes a graph (tf.function, tf.data, JAX). A TF1 session's graph is no trace.

    A process that has imported neither framework makes none.
    """
    return _in_trace_of_tensorflow() or _in_trace_of_jax()


def _in_trace_of_tensorflow() -> bool:
    ops = sys.modules.get("tensorflow.python.framework.ops")
    return ops is not None and not eager() and hasattr(ops.get_default_graph(), "outer_graph")


def _in_trace_of_jax() -> bool:
    outside = getattr(sys.modules.get("jax._src.core"), "trace_state_clean", None)
    return outside is not None and not outside()


class NamedArguments:
    """Arguments of a call by name: those that are changed are passed by keyword."""

    __slots__ = ("_bound",)

    def __init__(self, function: Foreign, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> None:
        """Raises TypeError where the call itself would, or if its signature is unknown."""
        self._bound = inspect.signature(function).bind(*args, **kwargs)
        self._bound.apply_defaults()

    def takes(self, name: str) -> bool:
        """Whether the function has such a parameter."""
        return name in self._bound.arguments

    def get(self, name: str) -> Foreign:
        """The value of a parameter, given or by default; None if there is no such parameter."""
        return self._bound.arguments.get(name)

    def set(self, name: str, value: Foreign) -> None:
        """Change the value of a parameter."""
        self._bound.arguments[name] = value

    @property
    def call(self) -> tuple[tuple[Foreign, ...], dict[str, Foreign]]:
        """Positional and keyword arguments of the changed call."""
        return self._bound.args, self._bound.kwargs
