"""Waits for or copies of a tensor by the host: numpy(), float(), int(), bool(), numpy.asarray of an eager tensor."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import SHORT_NS, Sites, drop_our_frame, lacking, report
from stepscope.wire.kinds import Kind
from stepscope.wire.ring import count_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

METHODS = ("numpy", "__float__", "__int__", "__bool__", "__index__", "__array__")


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the Python base class of eager tensors."""
    cls = getattr(module, "_EagerTensorBase", None)
    why = "no _EagerTensorBase" if cls is None else ""
    for method in METHODS:
        missing = why or lacking(cls, method, ("self",))
        if not missing and method in cls.__dict__:
            state.patch(cls, method, _wrap(state, cls.__dict__[method], method), (int(Kind.SYNC), None))
        why = why or missing
    report(state, "sync", why)


def _wrap(state: AgentState, original: Callable[..., Foreign], method: str) -> Callable[..., Foreign]:
    """Add two clock readings and a comparison around the call: most calls take below a microsecond."""
    text = method.strip("_")
    sites = Sites(state, ("sync", method), text=text)
    short_name = state.name(("sync", method), text)
    kind = int(Kind.SYNC)
    now = state.now
    write = state.write
    short = state.short
    caller = sys._getframe
    local = shared(state).local
    counted = state.records.counted
    key = count_key(short_name, kind, 0)

    def alone(self: Foreign) -> Foreign:
        start = now()
        try:
            value = original(self)
        except BaseException as error:
            write(start, now() - start, 0, short_name, kind, drop_our_frame(error), state.thread())
            raise
        spent = now() - start
        if spent >= SHORT_NS:
            write(start, spent, 0, sites.name(caller(1)), kind, 0, state.thread())
            return value
        me = local.me
        me.thread = thread = me.thread or state.thread()
        entry = counted.get(key | thread << 8)
        if entry is None or entry.counted == entry.reported:
            short(short_name, kind, start, spent)
        else:
            entry.counted += 1
            entry.total_ns += spent
        return value

    def with_arguments(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        start = now()
        try:
            value = original(self, *args, **kwargs)
        except BaseException as error:
            write(start, now() - start, 0, short_name, kind, drop_our_frame(error), state.thread())
            raise
        spent = now() - start
        if spent < SHORT_NS:
            short(short_name, kind, start, spent)
        else:
            write(start, spent, 0, sites.name(caller(1)), kind, 0, state.thread())
        return value

    takes_more = method == "__array__"
    return functools.update_wrapper(with_arguments if takes_more else alone, original)


TARGETS = (("tensorflow.python.framework.ops", attach),)
