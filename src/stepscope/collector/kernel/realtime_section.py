"""Calls during which a process may wait for us: nobody puts us off the CPU in them, where that is allowed.

The sidecar is niced. While it reads how a process's memory lies, or what is in it, the kernel holds the lock of that
process's address space for it; put off its CPU just then, it keeps the lock until it is its turn again: 60 to 1,000 ms
were measured where 14 threads wanted two CPUs. So it takes a real-time priority for such a call, 0.2 ms at most, and
gives it back; that takes CAP_SYS_NICE.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class RealtimeSection:
    """A context that is entered again and again, by one thread at a time."""

    def __init__(self) -> None:
        """Remember what this thread has."""
        self.allowed = True
        """Whether it is: known when it was entered once."""
        self._usual = os.sched_getscheduler(0), os.sched_getparam(0)

    def __enter__(self) -> Self:
        """Go before others."""
        if self.allowed:
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            except OSError:  # no rights: the call is short all the same
                self.allowed = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None, /
    ) -> None:
        """Be as before."""
        if self.allowed:
            os.sched_setscheduler(0, *self._usual)
