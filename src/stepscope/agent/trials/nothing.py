"""nothing: changes nothing. What blocks of it show is noise; in no catalogue, for measuring stepscope itself."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: nowhere; it counts as soon as steps are steady."""
    effect.on_switch = functools.partial(_count, effect)
    return []


def _count(effect: Effect) -> None:
    if effect.on:
        effect.took()
