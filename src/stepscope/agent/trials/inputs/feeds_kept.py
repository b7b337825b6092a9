"""feeds-kept: an array that the program gives to a compiled function again is the tensor that it was made before."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.support import FUNCTIONS, eager, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

LEAST_BYTES = 65_536
"""Smaller arrays cost no more to convert than to look up."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: calls of compiled functions."""
    effect.missed("no compiled function was given a NumPy array of 64 KiB or more a second time")
    return [(FUNCTIONS, functools.partial(_attach, effect))]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    tensors = WeakIds()

    def kept(value: Foreign) -> Foreign:
        """The tensor of an array that comes a second time; nested arguments are looked through."""
        kind = type(value)
        if kind in (list, tuple):
            return kind(map(kept, value))
        if kind is dict:
            return {key: kept(one) for key, one in value.items()}
        if kind is not sys.modules["numpy"].ndarray or value.nbytes < LEAST_BYTES or value.dtype.kind not in "fiub":
            return value
        known = tensors.get(value)
        if known is None:
            tensors.set(value, False)
            return value
        if known is False:
            known = sys.modules["tensorflow"].constant(value)
            tensors.set(value, known)
        effect.took()
        return known

    def make(original: Foreign) -> Foreign:
        def call(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
            if eager():
                with effect.wall:
                    args, kwargs = kept(args), kept(kwargs)
            return original(self, *args, **kwargs)

        return call

    replace(state, module.Function, "__call__", make)
