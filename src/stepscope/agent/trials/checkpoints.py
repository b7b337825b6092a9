"""no-checkpoints: of what the program saves, only the first is written, because programs look at their files; all later
calls return the paths that they otherwise would.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.support import KERAS_2, NamedArguments, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

    Returned = Callable[[int, NamedArguments], object]
    """Function of (number of the call on this object, its arguments) that gives its result."""

    Attach = Callable[[AgentState, Foreign], None]


def targets(effect: Effect) -> list[tuple[str, Attach]]:
    """Where it gets hold."""
    effect.missed("nothing was saved a second time")

    def attach(module: str, owner: str, **methods: Returned) -> tuple[str, Attach]:
        return module, functools.partial(_attach, effect, owner, methods)

    return [
        attach("tensorflow.python.checkpoint.checkpoint", "Checkpoint", save=_numbered, write=_prefix),
        attach("tensorflow.python.checkpoint.checkpoint_management", "CheckpointManager", save=_managed),
        attach("tensorflow.python.training.saver", "Saver", save=_saved),
        attach("tensorflow.python.saved_model.save", "", save=_none),
        attach("keras.src.saving.saving_api", "", save_model=_none, save_weights=_none),
        attach("tf_keras.src.saving.saving_api", "", save_model=_none, save_weights=_none),
        attach("keras.src.models.model", "Model", save=_none, save_weights=_none),
        *(attach(module, "Model", save=_none, save_weights=_none) for module in KERAS_2),
    ]


def _attach(effect: Effect, owner: str, methods: dict[str, Returned], state: AgentState, module: Foreign) -> None:
    place = getattr(module, owner) if owner else module
    for method, returned in methods.items():
        if method in vars(place):  # not in every version
            replace(state, place, method, functools.partial(_skipping, effect, returned))


def _skipping(effect: Effect, returned: Returned, original: Foreign) -> Foreign:
    numbers = WeakIds()

    def save(*args: Foreign, **kwargs: Foreign) -> Foreign:
        with effect.wall:
            given = NamedArguments(original, args, kwargs)
            number = _number(numbers, given.get("self") if given.takes("self") else original)
            if number > 1 and not effect.passed():
                effect.took()
                return returned(number, given)
        return original(*args, **kwargs)

    return save


def _number(numbers: WeakIds, saver: Foreign) -> int:
    """Number of the call, from 1: on its object, or of its function."""
    number = 1 + (numbers.get(saver) or 0)
    numbers.set(saver, number)
    return number


def _none(number: int, given: NamedArguments) -> None:
    del number, given


def _prefix(number: int, given: NamedArguments) -> object:
    del number
    return given.get("file_prefix")


def _numbered(number: int, given: NamedArguments) -> str:
    return "%s-%d" % (os.fspath(given.get("file_prefix")), number)


def _managed(number: int, given: NamedArguments) -> str:
    chosen = given.get("checkpoint_number")
    return "%s-%d" % (given.get("self")._checkpoint_prefix, number if chosen is None else int(chosen))


def _saved(number: int, given: NamedArguments) -> str:
    del number
    path, step = os.fspath(given.get("save_path")), given.get("global_step")
    return "%s-%d" % (path, step) if isinstance(step, int) else path
