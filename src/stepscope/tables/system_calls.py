"""System calls of a process in a window: ``SystemCalls`` is a file ``captures/calls/NNNN.json`` of a session."""

from __future__ import annotations

import msgspec

SCHEMA = "stepscope.system-calls/1"


class CallTotal(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one kind by one thread on one descriptor."""

    native: int
    """Thread id of the kernel."""
    thread: str
    """Name of the thread; "" if it had ended."""
    call: str
    """Name as in its manual page, or its number."""
    target: str = ""
    """What its descriptor stood for when the window ended: a path, ``10.0.0.7:6379``, ``pipe``; "": it has none."""
    count: int
    total_ns: int
    longest_ns: int
    """At least: of calls that returned in the window."""
    bytes: int = 0
    """Bytes that calls which read or write have moved."""
    failed: int = 0
    """Calls that returned an error, such as "try again"."""
    unfinished_ns: int = 0
    """Time until the window's end in a call that began in it and did not return; it is not in ``count``."""


class SystemCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted. Since 0.1. Calls that began before the window are not in it."""

    schema: str = SCHEMA
    pid: int
    at_ns: int
    """Begin, since session start."""
    wall_ns: int
    calls: tuple[CallTotal, ...] = ()
    """By falling time."""
    full: bool = False
    """Flag: more different calls were made than could be kept apart; some are missing."""
