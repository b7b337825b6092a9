"""steps-per-execution:N, graph: arguments of Keras' ``compile``, and functions that TensorFlow runs eagerly."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import KERAS_2, NamedArguments, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

    Attach = Callable[[AgentState, Foreign], object]

TRAINERS = ("keras.src.trainers.trainer", *KERAS_2)
OFF = False
AUTO = "auto"
"""What Keras 3 takes for ``jit_compile`` if it is given none."""
USUAL = {"steps_per_execution": 1}
"""What a parameter means that is None or 0."""
EAGERLY = "tensorflow.python.eager.polymorphic_function.eager_function_run"


def targets(effect: Effect) -> list[tuple[str, Attach]]:
    """Where it gets hold."""
    if effect.name == "steps-per-execution":
        effect.missed("no model of Keras was compiled")
        return compile_targets(effect, "steps_per_execution", effect.number())
    effect.missed("neither a model of Keras that runs eagerly nor run_functions_eagerly")
    setters = functools.partial(_attach_setter, effect)
    return [
        *compile_targets(effect, "run_eagerly", value=False),
        *((module, setters) for module in TRAINERS),
        (EAGERLY, functools.partial(_attach_functions, effect)),
    ]


def compile_targets(effect: Effect, parameter: str, value: object) -> list[tuple[str, Attach]]:
    """Set a parameter of ``compile``."""
    return [(module, functools.partial(_attach_compile, effect, parameter, value)) for module in TRAINERS]


def _attach_compile(effect: Effect, parameter: str, value: object, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def compile_(*args: Foreign, **kwargs: Foreign) -> Foreign:
            with effect.wall:
                given = NamedArguments(original, args, kwargs)
                if _changes(effect, given, parameter, value):
                    given.set(parameter, value)
                    args, kwargs = given.call
                    effect.took()
            return original(*args, **kwargs)

        return compile_

    replace(state, getattr(module, "Trainer", None) or module.Model, "compile", make)


def _changes(effect: Effect, given: NamedArguments, parameter: str, value: object) -> bool:
    if not given.takes(parameter):
        effect.missed("this version of Keras has no %s" % parameter)
        return False
    if parameter != "run_eagerly" and given.get("run_eagerly"):
        effect.missed("the model runs eagerly")
        return False
    before = given.get(parameter)
    if before == AUTO and not value and not _has_gpu():
        effect.missed("Keras compiles nothing by XLA on a machine without GPU")
        return False
    if (before or USUAL.get(parameter, OFF)) == value:
        effect.missed("the model is compiled so already: %s=%s" % (parameter, before))
        return False
    return True


def _has_gpu() -> bool:
    """Whether TensorFlow sees a GPU: only then Keras' "auto" means XLA."""
    return bool(sys.modules["tensorflow"].config.list_physical_devices("GPU"))


def _attach_setter(effect: Effect, state: AgentState, module: Foreign) -> None:
    """``model.run_eagerly = True`` after ``compile``."""
    cls = getattr(module, "Trainer", None) or module.Model
    original = vars(cls)["run_eagerly"]

    def set_(self: Foreign, value: Foreign) -> None:
        if value:
            effect.took()
        original.fset(self, OFF)

    state.patch(cls, "run_eagerly", property(original.fget, set_, original.fdel, original.__doc__))


def _attach_functions(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def run_functions_eagerly(run_eagerly: Foreign) -> None:
            if run_eagerly:
                effect.took()
            original(OFF)

        return run_functions_eagerly

    replace(state, module, "run_functions_eagerly", make)
