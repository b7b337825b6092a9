"""Waits of the host for an array of JAX, with the line that waits: float(), int(), bool(), item(), tolist(), str(),
``block_until_ready``, ``jax.device_get``.

A call of JAX returns before its work is done, on a CPU too: the wait is where the time of the work shows. Most methods
are Python's on the class of arrays. NumPy takes a view of an array on a CPU by the buffer protocol, which none of them
serves: ``numpy.asarray`` is not seen there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.reads import Reads, wrap
from stepscope.agent.probes.support import report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

ALONE = ("__float__", "__int__", "__bool__", "__index__", "__complex__", "__repr__", "__str__", "tolist")
MORE = ("__array__", "__format__", "block_until_ready", "item")
SEVERAL = "batched_block_until_ready"
"""What ``jax.block_until_ready`` calls with several arrays."""


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the class of arrays, to which ``jax.numpy`` has added methods, and the function that waits for several."""
    del module
    arrays = sys.modules.get("jax._src.array")
    cls = getattr(arrays, "ArrayImpl", None)
    why = "no ArrayImpl" if cls is None else ""
    if cls is not None:
        reads = Reads(state)
        state.hooks.on_tick(reads.tick)
        missing = [method for method in (*ALONE, *MORE) if not _patch(state, cls, method, reads)]
        if not _patch(state, getattr(arrays, "xc", None), SEVERAL, reads, text="block_until_ready"):
            missing.append(SEVERAL)
        why = "no " + ", ".join(missing) if missing else ""
    report(state, "waits", why)


def _patch(state: AgentState, owner: Foreign, method: str, reads: Reads, *, text: str = "") -> bool:
    """Whether ``owner`` has the method, which is wrapped then."""
    original = getattr(owner, "__dict__", {}).get(method)
    if not callable(original):
        return False
    hot = (int(Kind.SYNC), state.duty_cycle.light(Kind.SYNC, original))
    state.patch(owner, method, wrap(state, original, text or method, reads, takes_more=method not in ALONE), hot)
    return True


TARGETS = (("jax.numpy", attach),)
