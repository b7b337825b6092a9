"""compute-only: the input costs nothing, because its first batches are held in memory and repeated.

Fits and evaluations of Keras with whatever input, and loops of the program over a dataset. A fit makes as many steps as
without us; ``predict`` keeps its input, because its results would have other shapes.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.trials.inputs import feeds, held
from stepscope.agent.trials.support import DATASETS, TRAINER, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("neither a fit of Keras nor a loop of the program over a tf.data dataset")
    old = functools.partial(_attach_handler, effect)
    return [
        (TRAINER, functools.partial(_attach_trainer, effect)),
        (DATASETS, functools.partial(_attach_loops, effect)),
        *((module, old) for module in feeds.HANDLERS),
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
    def change(dataset: Foreign) -> Foreign:
        return held.hold(dataset, held.length(dataset))

    feeds.attach_loops(effect, change, state, module)
