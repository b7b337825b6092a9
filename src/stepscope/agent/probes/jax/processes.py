"""``jax.distributed.initialize``: which process of how many this is.

A job of JAX often says this in its program and not in variables, and has no thread of ours that would look later.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.probes.support import drop_our_frame, lacking, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Method = Callable[..., Foreign]


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``State.initialize``."""
    cls = getattr(module, "State", None)
    why = "no State" if cls is None else lacking(cls, "initialize", ("self", "coordinator_address"))
    if not why and cls is not None:
        state.patch(cls, "initialize", _wrap(state, cls.initialize))
    report(state, "processes", why)


def _wrap(state: AgentState, original: Method) -> Method:
    @functools.wraps(original)
    def initialize(*args: object, **kwargs: object) -> object:
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        state.membership.look()
        return result

    return initialize


TARGETS = (("jax._src.distributed", attach),)
