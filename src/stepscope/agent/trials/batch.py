"""batch:K: batches of K times as many examples: ``batch_size`` of fit, evaluate and predict over arrays,
``Dataset.batch`` and ``padded_batch`` where the program calls them. Steps per epoch become as many times fewer. K may
be a part: 1/2.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import (
    DATASETS,
    KERAS_2,
    TRAINER,
    NamedArguments,
    called_by_program,
    eager,
    replace,
    trainer_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

USUAL = 32
"""Batch size of a fit over arrays that is given none."""
STEPS = {"fit": "steps_per_epoch", "evaluate": "steps", "predict": "steps"}
"""Method of a model -> its parameter that limits the steps."""


class Factor:
    """What a batch size is multiplied by: "4", or a part, "1/2"."""

    __slots__ = ("below", "times")

    def __init__(self, text: str) -> None:
        """Raises ValueError unless it is a number of at least 1, or 1/ and such a number."""
        times, _, below = text.partition("/")
        self.times = int(times)
        self.below = int(below or 1)
        if self.times < 1 or self.below < 1:
            raise ValueError("batch:%s; expected a number of at least 1, or 1/2" % text)

    def of(self, size: int) -> int:
        """A size times it, 1 at least."""
        return max(1, size * self.times // self.below)

    def size(self, given: Foreign) -> Foreign:
        """The size that a program gives, times it: a number, or a tensor."""
        return self.of(given) if isinstance(given, int) else given * self.times // self.below

    def fewer(self, steps: int) -> int:
        """So many steps of batches times it."""
        return -(-steps * self.below // self.times)


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    factor = Factor(effect.argument)
    effect.missed("no fit, evaluate or predict over arrays and no batch of a dataset: the size is in the program")
    loops = functools.partial(_attach_loops, effect, factor)
    datasets = functools.partial(_attach_datasets, effect, factor)
    return [*((module, loops) for module in (TRAINER, *KERAS_2)), (DATASETS, datasets)]


def _attach_loops(effect: Effect, factor: Factor, state: AgentState, module: Foreign) -> None:
    def make(limit: str, original: Foreign) -> Foreign:
        def loop(*args: Foreign, **kwargs: Foreign) -> Foreign:
            if called_by_program():  # a fit's validation has the fit's size
                with effect.wall:
                    given = NamedArguments(original, args, kwargs)
                    if _larger(effect, factor, given, limit):
                        args, kwargs = given.call
            return original(*args, **kwargs)

        return loop

    for method, limit in STEPS.items():
        replace(state, trainer_class(module), method, functools.partial(make, limit))


def _larger(effect: Effect, factor: Factor, given: NamedArguments, limit: str) -> bool:
    """Change the arguments of a fit, evaluate or predict; False if they stay."""
    x, steps = given.get("x"), given.get(limit)
    if hasattr(x, "element_spec"):
        if steps and effect.count:  # by the dataset's batch()
            given.set(limit, factor.fewer(int(steps)))
        return bool(steps)
    if not _is_arrays(x):
        effect.missed("the fit's input makes its batches itself: %s" % type(x).__name__)
        return False
    given.set("batch_size", factor.of(int(given.get("batch_size") or USUAL)))
    if steps:
        given.set(limit, factor.fewer(int(steps)))
    effect.took()
    return True


def _is_arrays(value: Foreign) -> bool:
    if isinstance(value, dict):
        return all(map(_is_arrays, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_arrays, value))
    return hasattr(value, "shape")


def _attach_datasets(effect: Effect, factor: Factor, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def batch(*args: Foreign, **kwargs: Foreign) -> Foreign:
            if called_by_program():
                with effect.wall:
                    given = NamedArguments(original, args, kwargs)
                    if _fits(effect, factor, given):
                        given.set("batch_size", factor.size(given.get("batch_size")))
                        args, kwargs = given.call
                        effect.took()
            return original(*args, **kwargs)

        return batch

    for method in ("batch", "padded_batch"):
        replace(state, module.DatasetV2, method, make)


def _fits(effect: Effect, factor: Factor, given: NamedArguments) -> bool:
    """Whether a dataset has elements for at least one of the larger batches."""
    size, whole = given.get("batch_size"), given.get("drop_remainder")
    if not (isinstance(size, int) and whole is True and eager()):
        return True
    elements = int(given.get("self").cardinality())
    if 0 <= elements < factor.of(size):
        effect.missed("a dataset of %d elements has no batch of %d" % (elements, factor.of(size)))
        return False
    return True
