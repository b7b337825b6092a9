"""gc-off: once the steps are steady, Python collects no garbage, neither by itself nor when the program asks for it.
gc-calls-off: it collects by itself only, never because the program asks for it.
"""

from __future__ import annotations

import functools
import gc
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: not in a module, but at once, or when the steps are steady."""
    if effect.name == "gc-calls-off":
        effect.missed("the program never calls gc.collect()")
        replace(effect.state, gc, "collect", functools.partial(_nothing, effect))
        return []
    effect.pending = True
    effect.missed("no steps were steady")
    effect.on_steady = functools.partial(_stop, effect)
    return []


def _nothing(effect: Effect, original: Foreign) -> Foreign:
    del original

    def nothing(*args: Foreign, **kwargs: Foreign) -> int:
        del args, kwargs
        effect.took()
        return 0

    return nothing


def _stop(effect: Effect) -> None:
    make = functools.partial(_nothing, effect)
    if gc.isenabled():
        effect.state.hooks.on_uninstall(_again)
    gc.freeze()
    gc.disable()
    replace(effect.state, gc, "collect", make)
    replace(effect.state, gc, "enable", make)
    effect.took()


def _again() -> None:
    """Let Python collect garbage again: the agent has left, and its patches with it."""
    gc.enable()
