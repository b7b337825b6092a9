"""A hang: a time in which a job did nothing, what it waited for, and where its threads were.

Written to the manifest and to the live status while it lasts. Texts may come from another user's process.
"""

from __future__ import annotations

import msgspec


class HangFrame(msgspec.Struct, frozen=True):
    """A function on a stack, and its running line."""

    file: str
    function: str
    line: int = 0
    """0: unknown."""
    own: bool = False
    """Flag: the user's own code."""


class HangThread(msgspec.Struct, frozen=True, kw_only=True):
    """Threads of one process that did the same."""

    pid: int
    tid: int
    name: str = ""
    """Name that the kernel has for it."""
    state: str = ""
    """Letter of its state: R running, S sleeping, D in the kernel without being interruptible, T stopped, Z ended."""
    call: str = ""
    """System call in which it waits; "": none, or it may not be read."""
    on: str = ""
    """What that call waits for: "TCP 10.0.0.2:8470", "listening TCP 0.0.0.0:80", "pipe", "unix socket"; "": unknown."""
    switches: int = 0
    """How often it had begun to wait so far."""
    frames: tuple[HangFrame, ...] = ()
    """Python functions, innermost first; empty for a thread that runs none."""
    alike: int = 1
    """Number of threads: those without Python functions that do the same are listed once."""


class ChildEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A process that the job had started, and that has ended."""

    pid: int
    at_ns: int
    """When that was seen, since session start."""
    how: str = ""
    """Signal or exit code, where its parent has not asked for it yet: "killed by SIGKILL"; else ""."""


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """A hang. Since 0.1."""

    kind: str
    """What it waits for: queue | dataset | process | lock | network | other"""
    state: str = "hang"
    """State: hang (nothing computes) | busy (no step ends, and something computes)"""
    text: str = ""
    """What it waits for, in words."""
    pid: int = 0
    file: str = ""
    line: int = 0
    function: str = ""
    """The user's line that waits, in the thread on which the others depend."""
    main: HangFrame | None = None
    """The main thread's line, if it is another one."""
    since_ns: int = 0
    """End of the last work, since session start."""
    told_ns: int = 0
    """When it was recognised."""
    until_ns: int = 0
    """When there was work again; 0: it lasts, or lasted until the end of the job."""
    threads: tuple[HangThread, ...] = ()
    """All threads of the job's processes, the main thread first."""
    problem: str = ""
    """Why there are no Python functions; "" if there are."""
