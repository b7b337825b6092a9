"""What a Session.run that does not end may wait for: ops in its graph that take from a queue or an iterator.

Looked at by the agent's thread, every few seconds, from the frames of the threads: a run that ends in time costs
nothing, not even a note. One line for each long run, with the line of the user's code that made the op.
"""

from __future__ import annotations

import sys

from stepscope.agent.core import frames
from stepscope.agent.core.other_frames import Stacks, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

EVERY_NS = 3_000_000_000
LONG_NS = 6_000_000_000
"""A run that lasts longer is looked at, once."""
MAX_TOLD = 50
MAX_OPS = 5_000
"""Ops of a graph that are looked at: 2 ms."""
MAX_NAMED = 8
TAKES = ("Queue", "Barrier", "IteratorGetNext", "OrderedMapUnstage", "MapUnstage", "Unstage", "StackPop", "TakeGrad")
"""Prefixes of the types of ops that wait for what another thread or process brings."""
_DEPTH = 40


class AwaitedOps:
    """Looks at runs of one process."""

    def __init__(self, state: AgentState, code: CodeType) -> None:
        """Look at calls of the function with this code, whose variables ``start`` and ``fetches`` say what it runs."""
        self._state = state
        self._code = code
        self._next_ns = 0
        self._told: set[int] = set()

    def tick(self, now_ns: int) -> None:
        """Look if it is time."""
        if now_ns < self._next_ns or sys.is_finalizing() or len(self._told) >= MAX_TOLD:
            return
        self._next_ns = now_ns + EVERY_NS
        with Stacks() as stacks:
            runs = [dict(variables(run)) for run in map(self._run_of, stacks.values()) if run is not None]
        known = [(run.get("start"), run.get("fetches")) for run in runs]
        for start, fetches in known:
            if start is None or now_ns - start < LONG_NS or start in self._told:
                continue
            self._told.add(start)
            self._tell(fetches, start)

    def _run_of(self, frame: FrameType | None) -> FrameType | None:
        """The innermost run that is under way."""
        for _ in range(_DEPTH):
            if frame is None or frame.f_code is self._code:
                return frame
            frame = frame.f_back
        return None

    def _tell(self, fetches: Foreign, start: int) -> None:
        ops = [
            op for op in _ancestors(list(_ops(fetches))) if str(op.type).startswith(TAKES) and "Close" not in op.type
        ]
        named = [[str(op.type), str(op.name), *_made_at(op)] for op in ops[:MAX_NAMED]]
        self._state.log({"t": "run-waits", "at": self._state.now(), "start": start, "ops": named})


def _ops(fetches: Foreign) -> Iterator[Foreign]:
    if isinstance(fetches, (list, tuple)):
        for part in fetches:
            yield from _ops(part)
    elif isinstance(fetches, dict):
        for part in fetches.values():
            yield from _ops(part)
    else:
        found = getattr(fetches, "op", fetches)
        if hasattr(found, "inputs") and hasattr(found, "control_inputs"):
            yield found


def _ancestors(ops: list[Foreign]) -> list[Foreign]:
    """The ops that these depend on, and these, the nearest first."""
    met = {id(op) for op in ops}
    for op in ops:  # grows meanwhile
        for more in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
            if id(more) not in met and len(ops) < MAX_OPS:
                met.add(id(more))
                ops.append(more)
    return ops


def _made_at(op: Foreign) -> tuple[str, int, str]:
    """File, line and function of the user's innermost frame when an op was made; "" if it is not known."""
    for entry in reversed(list(getattr(op, "traceback", None) or ())):
        if frames.is_own(entry.filename):
            return frames.absolute(entry.filename), int(entry.lineno), str(entry.name)
    return "", 0, ""
