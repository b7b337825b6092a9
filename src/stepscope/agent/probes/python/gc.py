"""Garbage collections, as records: generation, start and duration.

``gc.callbacks`` is the interpreter's own hook for this. Collections below ``_SHORT_NS`` are counted.
"""

from __future__ import annotations

import gc

from stepscope.wire.kinds import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

_GC = int(Kind.GC)
_SHORT_NS = 20_000


def attach(state: AgentState, _module: Foreign) -> None:
    """Append our callback to ``gc.callbacks``."""
    callback = _make_callback(state)
    gc.callbacks.append(callback)

    def remove() -> None:
        if callback in gc.callbacks:
            gc.callbacks.remove(callback)

    state.hooks.on_uninstall(remove)
    state.log({"t": "probe", "at": state.now(), "name": "gc", "attached": True})


def _make_callback(state: AgentState) -> Callable[[str, dict[str, int]], None]:
    names = [state.name(("gc", n), "gc generation %d" % n) for n in range(3)]
    now, write, thread, short = state.now, state.write, state.thread, state.short
    lines = state.lines
    started = 0

    def callback(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = now()
            return
        if lines.dormant or not started:
            return
        try:
            dur = now() - started
            generation = info["generation"]
            if dur < _SHORT_NS:
                short(names[generation], _GC, started, dur)
            else:
                write(started, dur, generation, names[generation], _GC, 0, thread())
        except Exception as error:
            state.failures.add("gc", error)

    return callback


TARGETS = (("builtins", attach),)
