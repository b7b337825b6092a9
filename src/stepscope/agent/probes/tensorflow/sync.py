"""Waits for or copies of a tensor by the host: numpy(), float(), int(), bool(), numpy.asarray of an eager tensor.

Where TensorFlow is used without anything else that has a probe, op by op, each read has its record (``probes.reads``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.agent.probes.reads import Reads, wrap
from stepscope.agent.probes.support import lacking, report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

METHODS = ("numpy", "__float__", "__int__", "__bool__", "__index__", "__array__")


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the Python base class of eager tensors."""
    cls = getattr(module, "_EagerTensorBase", None)
    why = "no _EagerTensorBase" if cls is None else ""
    reads = Reads(state)
    state.hooks.on_tick(reads.tick)
    for method in METHODS:
        missing = why or lacking(cls, method, ("self",))
        if not missing and method in cls.__dict__:
            original = cls.__dict__[method]
            hot = (int(Kind.SYNC), state.duty_cycle.light(Kind.SYNC, original))
            state.patch(cls, method, wrap(state, original, method, reads, takes_more=method == "__array__"), hot)
        why = why or missing
    report(state, "sync", why)


TARGETS = (("tensorflow.python.framework.ops", attach),)
