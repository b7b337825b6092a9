"""Sections run briefly at real-time priority, if permitted, so that we are not preempted while a process may wait for
us.

The sidecar is niced. While it reads the layout or content of a process's memory, the kernel holds the lock of that
process's address space for it. If it is preempted then, it keeps the lock until it is scheduled again: 60 to 1,000 ms
were measured with 14 threads competing for two CPUs. It therefore takes a real-time priority for such a call, 0.2 ms at
most, and returns it; this requires CAP_SYS_NICE.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class RealtimeSection:
    """A reusable context, entered by one thread at a time."""

    def __init__(self) -> None:
        """Remember this thread's scheduling."""
        self.allowed = True
        """Flag: it is permitted; known once it has been entered."""
        self._usual = os.sched_getscheduler(0), os.sched_getparam(0)

    def __enter__(self) -> Self:
        """Take the real-time priority."""
        if self.allowed:
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            except OSError:  # no rights: the call is short anyway
                self.allowed = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None, /
    ) -> None:
        """Restore the previous scheduling."""
        if self.allowed:
            os.sched_setscheduler(0, *self._usual)
