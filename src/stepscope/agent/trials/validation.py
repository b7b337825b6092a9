"""no-validation: fits run without their validation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import KERAS_2, TRAINER, Given, replace, trainer_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

NONE = (("validation_data", None), ("validation_split", 0.0))
"""Parameters of fit, and their values without validation."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("no fit of Keras with validation")
    return [(module, functools.partial(_attach, effect)) for module in (TRAINER, *KERAS_2)]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def fit(*args: Foreign, **kwargs: Foreign) -> Foreign:
            with effect.wall:
                given = Given(original, args, kwargs)
                for name, value in NONE:
                    if given.get(name) is not None and given.get(name) != value:
                        given.set(name, value)
                        effect.took()
                args, kwargs = given.call
            return original(*args, **kwargs)

        return fit

    replace(state, trainer_class(module), "fit", make)
