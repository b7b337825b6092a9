"""input-only: the steps compute nothing, they only take their input.

After some real calls a step of Keras pulls its batches and returns the last logs; a compiled function that the program
calls on its main thread pulls the iterators that it is given and returns its last result.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.support import FUNCTIONS, KERAS_2, TRAINER, eager, is_own, replace, trainer_class

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

REAL = 3
"""Real calls before the first that computes nothing: the first makes variables, the next ones retrace."""
MARK = "__stepscope_input_only__"


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    effect.missed("neither a fit of Keras nor a compiled function that the program calls again and again")
    keras = functools.partial(_attach_trainer, effect)
    return [*((module, keras) for module in (TRAINER, *KERAS_2)), (FUNCTIONS, functools.partial(_attach_calls, effect))]


def _attach_trainer(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def make_train_function(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
            made = original(self, *args, **kwargs)
            with effect.wall:
                before = self.train_function
                if before is not None and not hasattr(before, MARK):
                    self.train_function = _pulling(effect, before, functools.partial(_batches, self))
                return self.train_function if made is before else made
            return made

        return make_train_function

    replace(state, trainer_class(module), "make_train_function", make)


def _batches(model: Foreign) -> int:
    """Batches that one call of the model's step function takes."""
    value = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", None) or 1
    return int(value.numpy()) if hasattr(value, "numpy") else int(value)


def _pulling(effect: Effect, original: Foreign, batches: Callable[[], int]) -> Foreign:
    kept: list[Foreign] = []

    def step(iterator: Foreign) -> Foreign:
        if len(kept) < REAL:
            kept.append(original(iterator))
            return kept[-1]
        next(iterator)
        for _ in range(batches() - 1):
            if next(iterator, None) is None:
                break
        effect.took()
        return kept[-1]

    setattr(step, MARK, True)
    return step


class KeptResults:
    """Results of a compiled function, by the shape of its call."""

    __slots__ = ("calls", "results")

    def __init__(self) -> None:
        self.calls: dict[Hashable, int] = {}
        self.results: dict[Hashable, Foreign] = {}


def _attach_calls(effect: Effect, state: AgentState, module: Foreign) -> None:
    known = WeakIds()
    main = threading.main_thread().ident
    inside: list[bool] = []

    def kept_of(function: Foreign) -> Foreign:
        """Its ``KeptResults``; False if the function is not the program's own."""
        found = known.get(function)
        if found is None:
            found = KeptResults() if is_own(function.python_function) else False
            known.set(function, found)
        return found

    def make(original: Foreign) -> Foreign:
        def call(self: Foreign, *args: Foreign, **kwds: Foreign) -> Foreign:
            kept: Foreign = False
            if threading.get_ident() == main and not inside and eager():
                with effect.wall:
                    kept = kept_of(self)
            if not kept:
                return original(self, *args, **kwds)
            shape = _shape(args, kwds)
            if kept.calls.get(shape, 0) >= REAL:
                _pull(args, kwds)
                effect.took()
                return kept.results[shape]
            inside.append(True)
            try:
                result = original(self, *args, **kwds)
            finally:
                inside.pop()
            kept.calls[shape] = kept.calls.get(shape, 0) + 1
            kept.results[shape] = result
            return result

        return call

    replace(state, module.Function, "__call__", make)


def _shape(args: tuple[Foreign, ...], kwds: dict[str, Foreign]) -> Hashable:
    """Calls of one shape return results of the same structure."""
    plain = tuple(value if isinstance(value, (bool, str)) else None for value in (*args, *kwds.values()))
    return (len(args), tuple(kwds), plain)


def _pull(args: tuple[Foreign, ...], kwds: dict[str, Foreign]) -> None:
    """Take a batch of each iterator that the call was given."""
    for value in (*args, *kwds.values()):
        if hasattr(value, "__next__") and hasattr(value, "element_spec"):
            next(value)
