"""Has the agent leave a process for which measuring is switched off (``wire.off``)."""

from __future__ import annotations

import os

from stepscope.wire import off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEVER = 1 << 62


class OffWatch:
    """Looked at by the agent's thread; in a process without one, where steps end."""

    __slots__ = ("_leave", "_switch", "due_ns")

    def __init__(self, leave: Callable[[str], object]) -> None:
        """``leave(why)`` takes the agent out."""
        self._leave = leave
        self._switch = off.OffSwitch(lambda: off.programs(os.getpid()))
        self.due_ns = 0
        """CLOCK_MONOTONIC from which ``look`` looks again."""

    def why(self, now_ns: int) -> str:
        """Why measuring is switched off, "" if it is not, or nothing has changed."""
        why = self._switch.look(now_ns)
        self.due_ns = _NEVER if why else self._switch.due_ns
        return why

    def look(self, now_ns: int) -> bool:
        """Leave if measuring was switched off; returns whether it was."""
        if now_ns < self.due_ns:
            return False
        why = self.why(now_ns)
        if why:
            self._leave(why)
        return bool(why)
