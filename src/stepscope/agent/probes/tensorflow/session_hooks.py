"""Hooks of MonitoredSession, one by one (CALLBACK), by the user's class and the line of the method.

A hook's method is wrapped in the class that defines it, for as long as the agent is there. Only the outermost call on a
thread is recorded: methods that it reaches by ``super()`` are part of it. Methods that are called in every run rest
when runs are short (``agent.rest``).
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import SHORT_NS, defined, drop_our_frame, lacking, leaf, report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Method = Callable[..., Foreign]
    Known = dict[tuple[type, str], dict[type, int]]
    """Wrapped methods by (class, name): name ids by the class of the hook."""

EACH_RUN = ("before_run", "after_run")
ONCE = ("begin", "after_create_session", "end")


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the construction of ``_MonitoredSession``: hooks get their wrappers before the first of them is called."""
    cls = getattr(module, "_MonitoredSession", None)
    base = getattr(getattr(module, "session_run_hook", None), "SessionRunHook", None)
    why = "no _MonitoredSession" if cls is None else lacking(cls, "__init__", ("self", "session_creator", "hooks"))
    if not why and base is None:
        why = "no SessionRunHook"
    if not why and cls is not None:
        state.patch(cls, "__init__", _wrap_making(state, cls.__init__, base))
    report(state, "session_hooks", why)


def _wrap_making(state: AgentState, original: Method, base: object) -> Method:
    known: Known = {}

    @functools.wraps(original)
    def make(self: object, session_creator: object, hooks: object, *args: object, **kwargs: object) -> object:
        with state.guard("session_hooks.adopt"):
            if isinstance(hooks, (list, tuple)):
                _, function, line = place = leaf(frames.user_stack(1, sys._getframe(1)))
                for hook in hooks:
                    _adopt(
                        state, known, hook, base, {"call_file": place[0], "call_line": line, "call_function": function}
                    )
        try:
            return original(self, session_creator, hooks, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    return make


def _adopt(state: AgentState, known: Known, hook: object, base: object, made: dict[str, object]) -> None:
    for method in (*EACH_RUN, *ONCE):
        for cls in type(hook).__mro__[:-1]:
            found = cls.__dict__.get(method)
            if cls is base or not callable(found):
                continue
            names = known.get((cls, method))
            if names is None:
                names = known[cls, method] = {}
                rests = (int(Kind.CALLBACK), None) if method in EACH_RUN else None
                state.patch(cls, method, _wrap(state, found, names, always=method in ONCE), rests)
            if type(hook) not in names:
                names[type(hook)] = _name(state, type(hook), method, found, made)
            break


def _name(state: AgentState, cls: type, method: str, function: object, made: dict[str, object]) -> int:
    text = "%s.%s" % (cls.__name__, method)
    where = defined(function)
    key = ("session-hook", cls.__module__, cls.__qualname__, method)
    return state.name(key, text, hook=method, **{**made, **where})


def _wrap(state: AgentState, original: Method, names: dict[type, int], *, always: bool) -> Method:
    local = shared(state).local
    now = state.now
    write = state.write
    short = state.short
    kind = int(Kind.CALLBACK)

    @functools.wraps(original)
    def method(self: object, *args: object, **kwargs: object) -> object:
        me = local.me
        name = names.get(type(self))
        if me.hook or name is None:
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        me.hook = 1
        flags = 0
        start = now()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.hook = 0
            if spent >= SHORT_NS or always:
                write(start, spent, 0, name, kind, flags, state.thread())
            else:
                short(name, kind, start, spent)

    return method


TARGETS = (("tensorflow.python.training.monitored_session", attach),)
