"""reduce-retracing, functions-reused: fewer traces of the program's own tf.functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.trials.support import FUNCTIONS, NamedArguments, is_own, replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

REDUCE = "reduce-retracing"
PARAMETERS = ("reduce_retracing", "experimental_relax_shapes")
"""Parameter of tf.function, by version, that lets a trace take several shapes."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("the program makes no tf.function" if effect.name == REDUCE else "no tf.function is made twice")
    make = _reducing if effect.name == REDUCE else _reusing
    return [(FUNCTIONS, functools.partial(_attach, effect, make))]


def _attach(effect: Effect, make: Callable[[Effect, Foreign], Foreign], state: AgentState, module: Foreign) -> None:
    replace(state, module.Function, "__init__", functools.partial(make, effect))


def _reducing(effect: Effect, original: Foreign) -> Foreign:
    def init(*args: Foreign, **kwargs: Foreign) -> None:
        with effect.wall:
            given = NamedArguments(original, args, kwargs)
            name = next((name for name in PARAMETERS if given.takes(name)), None)
            if name is not None and not given.get(name) and is_own(given.get("python_function")):
                given.set(name, True)
                args, kwargs = given.call
                effect.took()
        original(*args, **kwargs)

    return init


def _reusing(effect: Effect, original: Foreign) -> Foreign:
    known: dict[CodeType, dict[str, Foreign]] = {}

    def init(self: Foreign, python_function: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        code = frames.code_of(python_function) if is_own(python_function) else None
        if code is not None and code in known:
            with effect.wall:
                self.__dict__ = known[code]  # with the traces of the first one
                effect.took()
                return
        original(self, python_function, *args, **kwargs)
        if code is not None:
            known[code] = self.__dict__

    return init
