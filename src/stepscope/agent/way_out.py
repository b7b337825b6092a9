"""Lets go of a process that does not end although its program has.

The interpreter waits for threads that are no daemons, or for an exit handler. Threads that work are the job, and go on
being measured; if nothing is recorded for half a minute, the agent leaves, so that nothing waits for what it holds.
From our own exit handler on there is no thread of ours: that handler lets go, and the collector says what the process
waits for.

No frame is looked at here: the collector reads the stacks from outside.
"""

from __future__ import annotations

import threading

from stepscope.wire.env import unended_ns
from stepscope.wire.kinds import Trait, kinds_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

CODE = "DX903"
LOOK_NS = 1_000_000_000
MOST_RECORDS = 4_096
_MOST_NAMES = 8
_NO_WORK = frozenset(map(int, (*kinds_with(Trait.IDLE), *kinds_with(Trait.OURS))))


class WayOut:
    """Watches for the program's end, on the agent's thread."""

    def __init__(self, state: AgentState) -> None:
        """The program runs."""
        self._state = state
        self._least_ns = unended_ns()
        self._next_ns = 0
        self._index = 0
        self._ended_ns = self._worked_ns = 0

    def tick(self, now_ns: int) -> None:
        """Leave if the program has ended, the process has not, and nothing was recorded for long enough."""
        if now_ns < self._next_ns or not program_ended():
            return
        self._next_ns = now_ns + LOOK_NS
        if not self._ended_ns:
            self._ended_ns = now_ns
            self._index = self._state.records.written()
        if self._works():
            self._worked_ns = now_ns
        if now_ns - max(self._ended_ns, self._worked_ns) >= self._least_ns:
            ended_s = (now_ns - self._ended_ns) / 1e9
            self._state.take_out(
                "its program ended %.0f s ago, its process has not: %s" % (ended_s, holders()), code=CODE
            )

    def _works(self) -> bool:
        """Whether calls were recorded since the last look, or are counted only."""
        self._index, records = self._state.records.since(self._index, MOST_RECORDS)
        return self._state.duty_cycle.detached or any(fields[4] not in _NO_WORK for fields in records)


def program_ended() -> bool:
    """Whether the main thread's code has run: the interpreter has begun to end."""
    return bool(getattr(threading, "_SHUTTING_DOWN", False)) or not threading.main_thread().is_alive()


def holders() -> str:
    """What keeps the process alive, in words."""
    main = threading.main_thread()
    names = [t.name for t in threading.enumerate() if t is not main and t.is_alive() and not t.daemon]
    if not names:
        return "an exit handler has not returned"
    more = "" if len(names) <= _MOST_NAMES else " and %d more" % (len(names) - _MOST_NAMES)
    return "it waits for threads that are no daemons: %s%s" % (", ".join(names[:_MOST_NAMES]), more)
