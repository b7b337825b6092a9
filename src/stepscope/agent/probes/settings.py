"""Settings of TensorFlow that change how everything runs: whether tf.functions run eagerly."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from stepscope.agent.probes.support import lacking, leaf, leave, report, user_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.state import AgentState

NAME = "run_functions_eagerly"


def attach(state: AgentState, module: Any) -> None:
    """Patch ``tf.config.run_functions_eagerly`` where it is defined, before TensorFlow's API takes it from there."""
    why = lacking(module, NAME, ("run_eagerly",))
    if not why:
        state.patch(module, NAME, _wrap(state, getattr(module, NAME)))
    report(state, "settings", why)


def _wrap(state: AgentState, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_functions_eagerly(run_eagerly: Any) -> Any:
        try:
            result = original(run_eagerly)
        except BaseException as error:
            leave(error)
            raise
        with state.guard("settings.tell"):
            file, function, line = leaf(user_stack())
            where = {"file": file, "line": line, "function": function}
            state.log({"t": "setting", "at": state.now(), "name": NAME, "value": bool(run_eagerly), **where})
        return result

    return run_functions_eagerly


TARGETS = (("tensorflow.python.eager.polymorphic_function.eager_function_run", attach),)
