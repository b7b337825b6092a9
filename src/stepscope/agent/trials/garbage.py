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
    def make(original: Foreign) -> Foreign:
        def nothing(*args: Foreign, **kwargs: Foreign) -> int:
            return 0 if effect.on else original(*args, **kwargs)

        return nothing

    enabled = gc.isenabled()
    if enabled:
        effect.state.hooks.on_uninstall(_again)
    enable = gc.enable
    replace(effect.state, gc, "collect", make)
    replace(effect.state, gc, "enable", make)
    if effect.switched:
        effect.on_switch = functools.partial(_switch, effect, enable if enabled else gc.disable)
        effect.passed()
        return
    gc.freeze()
    gc.disable()
    effect.took()


def _switch(effect: Effect, enable: Callable[[], object]) -> None:
    """On and off again. Nothing is frozen: it would make the collections cheaper while it is off."""
    if effect.on:
        gc.disable()
        effect.took()
    else:
        enable()


def _again() -> None:
    """Let Python collect garbage again: the agent has left, and its patches with it."""
    gc.enable()
