"""The system calls of the job, counted in windows that somebody asked for."""

from __future__ import annotations

from stepscope.tables.structs import Struct


class CallRow(Struct, frozen=True, kw_only=True):
    """All calls of one kind by one thread on one file or peer, over all windows."""

    pid: int
    native: int
    """Thread id of the kernel."""
    thread: str
    """Name of the thread; empty: it had ended."""
    of_steps: bool
    """Whether this thread makes the steps."""
    call: str
    target: str = ""
    """What its descriptor stood for when the window ended; empty: the call has none."""
    count: int
    """Calls that returned within a window."""
    ratio: float
    """Share of the windows' time in such a call, a wait that was not over included."""
    total_ns: int
    longest_ns: int
    bytes: int = 0
    """Bytes read or written."""
    failed: int = 0
    """Calls that returned an error."""


class SystemCallsSummary(Struct, frozen=True, kw_only=True):
    """What was counted."""

    windows: int
    wall_ns: int
    """Time of all windows together."""
    steps: int
    """Steps that ended in them; 0: unknown."""
    count: int
    """Calls of all threads that returned."""
    rows: tuple[CallRow, ...] = ()
    """At most 40: those of the thread that makes the steps first, each group by falling time."""
    full: bool = False
    """Whether some calls could not be kept apart and are missing."""
