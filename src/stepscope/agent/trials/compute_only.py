"""compute-only: the input costs nothing, because its first batches are held in memory and repeated.

Fits and evaluations of Keras with whatever input, and loops of the program over a dataset. A fit makes as many steps as
without us; ``predict`` keeps its input, because its results would have other shapes.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials import held
from stepscope.agent.trials.support import DATASETS, TRAINER, called_by_program, eager, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

KERAS_2 = ("keras.src.engine.data_adapter", "tf_keras.src.engine.data_adapter")


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("neither a fit of Keras nor a loop of the program over a tf.data dataset")
    old = functools.partial(_attach_handler, effect)
    return [
        (TRAINER, functools.partial(_attach_trainer, effect)),
        (DATASETS, functools.partial(_attach_loops, effect)),
        *((module, old) for module in KERAS_2),
    ]


def _attach_trainer(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
            original(self, *args, **kwargs)
            if sys._getframe(1).f_code.co_name != "predict":
                with effect.wall:
                    steps = self.data_adapter.num_batches or (held.INFINITE if self.steps_per_epoch else held.LONG)
                    _exchange(effect, self, "_distributed_dataset", int(steps))

        return init

    replace(state, module.TFEpochIterator, "__init__", make)


def _attach_handler(effect: Effect, state: AgentState, module: Foreign) -> None:
    """The same for Keras 2, whose handler cuts epochs by ``_inferred_steps``."""

    def make(original: Foreign) -> Foreign:
        def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
            original(self, *args, **kwargs)
            if sys._getframe(1).f_code.co_name != "predict":
                with effect.wall:
                    _exchange(effect, self, "_dataset", held.INFINITE if self._inferred_steps else held.LONG)

        return init

    replace(state, module.DataHandler, "__init__", make)


def _exchange(effect: Effect, owner: Foreign, attribute: str, steps: int) -> None:
    dataset = getattr(owner, attribute)
    if not hasattr(dataset, "take"):
        effect.missed("the input is distributed over devices by a strategy")
        return
    found = held.hold(dataset, steps)
    if found is not None:
        setattr(owner, attribute, found)
        effect.took()


def _attach_loops(effect: Effect, state: AgentState, module: Foreign) -> None:
    known = WeakIds()

    def of(dataset: Foreign) -> Foreign:
        found = known.get(dataset)
        if found is None:
            found = held.hold(dataset, held.length(dataset)) or dataset
            if found is dataset:
                return dataset
            known.set(dataset, found)
        effect.took()
        return found

    def make(original: Foreign) -> Foreign:
        def iterate(self: Foreign) -> Foreign:
            dataset = self
            if called_by_program(sys._getframe(1)) and eager():
                with effect.wall:
                    dataset = of(self)
            return original(dataset)

        return iterate

    for method in ("__iter__", "as_numpy_iterator"):
        replace(state, module.DatasetV2, method, make)
