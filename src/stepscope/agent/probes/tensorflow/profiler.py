"""Starts and stops of the user's own profiler. It wins: ours is gone before it begins."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.capture.orders import PROFILER
from stepscope.agent.capture.profiler import Profiler
from stepscope.agent.probes.support import drop_our_frame, lacking, leaf, report, user_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``start``, ``stop`` and ``start_server``; ``Profile`` and TensorBoard's callback call the first two."""
    why = lacking(module, "start", ("logdir",))
    ours = None
    if not why:
        sessions = getattr(getattr(module, "_pywrap_profiler", None), "ProfilerSession", None)
        missing = [name for name in ("start", "export_to_tb") if not hasattr(sessions, name)]
        if missing:
            report(state, "profiler.captures", "ProfilerSession has no %s" % " and no ".join(missing))
        else:
            ours = state.captures.tracers[PROFILER] = Profiler(state.lines, module)
            state.captures.profiled = ours.of_user
        state.patch(module, "start", _wrap_start(state, module.start, ours))
    for function, action in (("stop", "stop"), ("start_server", "server")):
        missing_function = lacking(module, function)
        why = why or missing_function
        if not missing_function:
            state.patch(module, function, _wrap(state, getattr(module, function), action))
    report(state, "profiler", why)


def _wrap_start(state: AgentState, original: Callable[..., Foreign], ours: Profiler | None) -> Callable[..., Foreign]:
    @functools.wraps(original)
    def start(*args: Foreign, **kwargs: Foreign) -> Foreign:
        began = state.now()
        told: dict[str, object] = {"t": "profiler", "at": began, "action": "start"}
        with state.guard("profiler.where"):
            told["file"], told["function"], told["line"] = leaf(user_stack())
        state.log(told)
        try:
            if ours is not None:
                with state.guard("profiler.give_way"):
                    state.captures.give_way()
            return original(*args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            state.log({"t": "profiler", "at": began, "action": "failed"})
            raise
        finally:
            if ours is not None:
                ours.started()

    return start


def _wrap(state: AgentState, original: Callable[..., Foreign], action: str) -> Callable[..., Foreign]:
    @functools.wraps(original)
    def observed(*args: Foreign, **kwargs: Foreign) -> Foreign:
        began = state.now()
        state.captures.served |= action == "server"
        state.log({"t": "profiler", "at": began, "action": action})
        found = original(*args, **kwargs)
        if action == "stop":
            state.log({"t": "profiler", "at": began, "action": "stopped", "dur_ns": state.now() - began})
        return found

    return observed


TARGETS = (("tensorflow.python.profiler.profiler_v2", attach),)
