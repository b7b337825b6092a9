"""graph-function:FUNCTION, graph-function:FILE:LINE: a Python function of the program becomes a tf.function."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stepscope.agent.trials.code import functions
from stepscope.agent.trials.support import eager

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.code.trampoline import Handler
    from stepscope.agent.trials.effect import Effect


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: not in a module, but wherever the function is."""
    functions.exchange(effect, _handler)
    return []


def _handler(effect: Effect, real: FunctionType) -> Handler:
    compiled: Foreign = None

    def handle(args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> Foreign:
        nonlocal compiled
        if not eager():
            effect.missed("%s runs in a graph already" % effect.argument)
            return real(*args, **kwargs)
        if compiled is None:
            compiled = sys.modules["tensorflow"].function(real)
        effect.took()
        return compiled(*args, **kwargs)

    return handle
