"""no-checkpoints: nothing that the program saves is written; the calls return the paths that they would have returned."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.support import KERAS_2, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

    Returned = Callable[[int, tuple[Foreign, ...], dict[str, Foreign]], object]
    """Function of (number of the call on this object, positional and keyword arguments) that gives its result."""

    Attach = Callable[[AgentState, Foreign], None]


def targets(effect: Effect) -> list[tuple[str, Attach]]:
    """Where it gets hold."""
    effect.missed("nothing was saved")

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
        result: Foreign = None
        failed = True
        with effect.wall:
            number = (numbers.get(args[0]) or 0) + 1 if args and returned is not _none else 1
            result = returned(number, args, kwargs)
            if returned is not _none:
                numbers.set(args[0], number)
            failed = False
        if failed:
            return original(*args, **kwargs)
        effect.took()
        return result

    return save


def _none(number: int, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> None:
    del number, args, kwargs


def _prefix(number: int, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> object:
    del number
    return args[1] if len(args) > 1 else kwargs["file_prefix"]


def _numbered(number: int, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> str:
    return "%s-%d" % (os.fspath(args[1] if len(args) > 1 else kwargs["file_prefix"]), number)


def _managed(number: int, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> str:
    given = args[1] if len(args) > 1 else kwargs.get("checkpoint_number")
    return "%s-%d" % (args[0]._checkpoint_prefix, number if given is None else int(given))


def _saved(number: int, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> str:
    del number
    path = os.fspath(args[2] if len(args) > 2 else kwargs["save_path"])  # noqa: PLR2004 - save(self, sess, save_path)
    step = args[3] if len(args) > 3 else kwargs.get("global_step")  # noqa: PLR2004 - its next parameter
    return "%s-%d" % (path, step) if isinstance(step, int) else path
