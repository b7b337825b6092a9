"""Settings that change how everything runs: tf.functions that run eagerly, determinism, debugging, Keras' precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stepscope.agent.probes.support import followed, lacking, leaf, report, user_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


class Switch(NamedTuple):
    """A function of a module that turns a setting on or off."""

    function: str
    setting: str
    value: bool | None
    """Value that it sets; None means its first argument."""
    parameters: tuple[str, ...] = ()
    on: str = ""
    """Argument that turns it on, as text; "": any true one."""


CHECKS = "tensorflow.python.debug.lib.check_numerics_callback"
DUMPS = "tensorflow.python.debug.lib.dumping_callback"
FLOATS = ("keras.src.backend.config", "keras.src.backend_config", "tf_keras.src.backend_config")
SWITCHES = {
    "tensorflow.python.eager.polymorphic_function.eager_function_run": (
        Switch("run_functions_eagerly", "run_functions_eagerly", None, ("run_eagerly",)),
    ),
    CHECKS: (
        Switch("enable_check_numerics", "check_numerics", True),
        Switch("disable_check_numerics", "check_numerics", False),
    ),
    DUMPS: (
        Switch("enable_dump_debug_info", "dump_debug_info", True),
        Switch("disable_dump_debug_info", "dump_debug_info", False),
    ),
    "tensorflow.python.framework.config": (Switch("enable_op_determinism", "op_determinism", True),),
    "tensorflow.python.data.ops.debug_mode": (Switch("enable_debug_mode", "data_debug_mode", True),),
    **dict.fromkeys(FLOATS, (Switch("set_floatx", "double_precision", None, ("value",), "float64"),)),
}
"""Switches by the module that defines them: they are patched there before TensorFlow's API imports them."""


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the switches of a module."""
    for switch in SWITCHES[module.__name__]:
        why = lacking(module, switch.function, switch.parameters)
        if not why:
            original = getattr(module, switch.function)
            state.patch(module, switch.function, followed(state, original, "settings.tell", _telling(state, switch)))
        report(state, "settings.%s" % switch.function, why)


def _telling(state: AgentState, switch: Switch) -> Callable[..., None]:
    def tell(_: object, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        value = switch.value
        if value is None:
            given = args[0] if args else next(iter(kwargs.values()))
            value = str(given) == switch.on if switch.on else bool(given)
        file, function, line = leaf(user_stack())
        where = {"file": file, "line": line, "function": function}
        state.log({"t": "setting", "at": state.now(), "name": switch.setting, "value": value, **where})

    return tell


TARGETS = tuple((module, attach) for module in SWITCHES)
