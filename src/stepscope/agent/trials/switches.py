"""checks-off, determinism-off: switches of TensorFlow that the program turns on do nothing."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

SWITCHES = {
    "checks-off": {
        "tensorflow.python.debug.lib.check_numerics_callback": ("enable_check_numerics",),
        "tensorflow.python.debug.lib.dumping_callback": ("enable_dump_debug_info",),
        "tensorflow.python.data.ops.debug_mode": ("enable_debug_mode",),
    },
    "determinism-off": {"tensorflow.python.framework.config": ("enable_op_determinism",)},
}
"""Functions that turn something on, by intervention and module."""
VARIABLE = "TF_DETERMINISTIC_OPS"
"""Variable that makes ops deterministic where the program does not."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: before TensorFlow's API imports the functions."""
    effect.missed("the program turns nothing of that kind on")
    if effect.name == "determinism-off" and os.environ.pop(VARIABLE, None) is not None:
        effect.took()
    attach = functools.partial(_attach, effect)
    return [(module, attach) for module in SWITCHES[effect.name]]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    for name in SWITCHES[effect.name][module.__name__]:
        replace(state, module, name, functools.partial(_nothing, effect))


def _nothing(effect: Effect, original: Foreign) -> Foreign:
    del original

    def turn_on(*args: Foreign, **kwargs: Foreign) -> Foreign:
        del args, kwargs
        effect.took()

    return turn_on
