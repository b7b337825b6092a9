"""Gradients of tapes, taken from Python outside of Keras' loops and of tracing: backward passes of eager steps."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import Sites, drop_our_frame, eager_test, lacking, report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

METHOD = "gradient"


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``GradientTape.gradient``."""
    cls = getattr(module, "GradientTape", None)
    why = "no GradientTape" if cls is None else lacking(cls, METHOD, ("self", "target", "sources"))
    if not why:
        original = cls.__dict__[METHOD]
        hot = (int(Kind.GRADIENT), state.duty_cycle.light(Kind.GRADIENT, original))
        state.patch(cls, METHOD, _wrap(state, original), hot)
    report(state, "gradients", why)


def _wrap(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    local = shared(state).local
    eager = eager_test()
    sites = Sites(state, "gradient", text="gradient")
    now = state.now
    write = state.write
    caller = sys._getframe
    kind = int(Kind.GRADIENT)

    @functools.wraps(original)
    def gradient(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        flags = 0
        start = now()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            if not me.tracing and me.loop is None and eager():
                me.thread = thread = me.thread or state.thread()
                write(start, spent, 0, sites.name(caller(1)), kind, flags, thread)

    return gradient


TARGETS = (("tensorflow.python.eager.backprop", attach),)
