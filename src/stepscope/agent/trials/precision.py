"""mixed-bfloat16: layers of Keras compute in bfloat16, unless the program gives them a type. float32: Keras
stays in single precision where the program sets another type for all of it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

POLICY = "mixed_bfloat16"
POLICIES = {
    "keras.src.dtype_policies.dtype_policy": ("dtype_policy", "DTypePolicy"),
    "keras.src.mixed_precision.policy": ("global_policy", "Policy"),
    "tf_keras.src.mixed_precision.policy": ("global_policy", "Policy"),
}
"""By module, the function that every layer asks for its policy, and the class of policies."""
OTHERS = frozenset(("float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"))
SETTERS = {
    "keras.src.backend.config": "set_floatx",
    "keras.src.backend_config": "set_floatx",
    "tf_keras.src.backend_config": "set_floatx",
    "keras.src.dtype_policies.dtype_policy": "set_dtype_policy",
    "keras.src.mixed_precision.policy": "set_global_policy",
    "tf_keras.src.mixed_precision.policy": "set_global_policy",
}
"""By module, the function that sets the type of all layers."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    if effect.name == "float32":
        effect.missed("the program sets no other type than float32 for all of Keras")
        return [(module, functools.partial(_attach_setter, effect)) for module in SETTERS]
    effect.missed("no layer of Keras")
    return [(module, functools.partial(_attach, effect)) for module in POLICIES]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    function, cls = POLICIES[module.__name__]
    made: list[Foreign] = []

    def make(original: Foreign) -> Foreign:
        def policy() -> Foreign:
            with effect.wall:
                if not made:
                    made.append(getattr(module, cls)(POLICY))
                effect.took()
                return made[0]
            return original()

        return policy

    replace(state, module, function, make)


def _attach_setter(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def set_type(value: Foreign) -> None:
            if str(getattr(value, "name", value)) in OTHERS:
                effect.took()
            else:
                original(value)

        return set_type

    replace(state, module, SETTERS[module.__name__], make)
