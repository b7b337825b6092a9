"""Where the program consumes a dataset: in a fit, and in its loops."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.support import DATASETS, TRAINER, called_by_program, eager, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

    Change = Callable[[Foreign], Foreign]
    """Function that makes of a dataset the one to consume; None leaves it as it is."""

HANDLERS = ("keras.src.engine.data_adapter", "tf_keras.src.engine.data_adapter")
"""Modules of Keras 2 with the class DataHandler."""


def targets(effect: Effect, change: Change) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Change every dataset that the program consumes."""
    effect.missed("the program consumes no tf.data dataset, neither by fit nor in a loop")
    fits = functools.partial(_attach_fits, effect, change)
    loops = functools.partial(attach_loops, effect, change)
    return [*((module, fits) for module in (TRAINER, *HANDLERS)), (DATASETS, loops)]


def attach_loops(effect: Effect, change: Change, state: AgentState, module: Foreign) -> None:
    """Change datasets that the program iterates over."""
    changed = _Changed(effect, change)

    def make(original: Foreign) -> Foreign:
        def iterate(self: Foreign) -> Foreign:
            dataset = self
            if called_by_program() and eager():
                with effect.wall:
                    dataset = changed.of(self)
            return original(dataset)

        return iterate

    for method in ("__iter__", "as_numpy_iterator"):
        replace(state, module.DatasetV2, method, make)


def _attach_fits(effect: Effect, change: Change, state: AgentState, module: Foreign) -> None:
    changed = _Changed(effect, change)

    def make(original: Foreign) -> Foreign:
        def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
            with effect.wall:
                if hasattr(kwargs.get("x"), "element_spec"):
                    kwargs["x"] = changed.of(kwargs["x"])
            original(self, *args, **kwargs)

        return init

    replace(state, getattr(module, "TFEpochIterator", None) or module.DataHandler, "__init__", make)


class _Changed:
    """Datasets that were changed: an epoch consumes the same one as the epoch before."""

    def __init__(self, effect: Effect, change: Change) -> None:
        self._effect = effect
        self._change = change
        self._known = WeakIds()

    def of(self, dataset: Foreign) -> Foreign:
        """The dataset to consume in place of ``dataset``."""
        found = self._known.get(dataset)
        if found is None:
            found = self._change(dataset)
            if found is None:
                return dataset
            self._known.set(dataset, found)
        self._effect.took()
        return found
