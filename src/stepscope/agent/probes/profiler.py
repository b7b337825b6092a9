"""The user's own profiler: when it starts and stops. We only observe; none of ours runs at this level."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from stepscope.agent.probes.support import lacking, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.state import AgentState

ACTIONS = ("start", "stop")


def attach(state: AgentState, module: Any) -> None:
    """Patch ``start`` and ``stop``; the ``Profile`` context manager and TensorBoard's callback call these."""
    why = ""
    for action in ACTIONS:
        missing = lacking(module, action)
        why = why or missing
        if not missing:
            state.patch(module, action, _wrap(state, getattr(module, action), action))
    report(state, "profiler", why)


def _wrap(state: AgentState, original: Callable[..., Any], action: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def observed(*args: Any, **kwargs: Any) -> Any:
        state.log({"t": "profiler", "at": state.now(), "action": action})
        return original(*args, **kwargs)

    return observed


TARGETS = (("tensorflow.python.profiler.profiler_v2", attach),)
