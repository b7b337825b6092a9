"""xla-on, xla-off: ``jit_compile`` of Keras' ``compile`` and of the program's own tf.functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.compile_settings import compile_targets
from stepscope.agent.trials.support import FUNCTIONS, NamedArguments, is_own, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

ON = "xla-on"


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    on = effect.name == ON
    effect.missed("no model of Keras and no tf.function of the program" if on else "nothing is compiled by XLA")
    return [
        *compile_targets(effect, "jit_compile", value=on),
        (FUNCTIONS, functools.partial(_attach, effect)),
    ]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    on = effect.name == ON

    def make(original: Foreign) -> Foreign:
        def init(*args: Foreign, **kwargs: Foreign) -> None:
            with effect.wall:
                given = NamedArguments(original, args, kwargs)
                if bool(given.get("jit_compile")) != on and is_own(given.get("python_function")):
                    given.set("jit_compile", on)
                    args, kwargs = given.call
                    effect.took()
            original(*args, **kwargs)

        return init

    replace(state, module.Function, "__init__", make)
