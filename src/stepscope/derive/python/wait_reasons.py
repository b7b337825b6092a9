"""What a sampled thread waited for, from the system call that a look found and from its innermost frames.

Locks of Python, conditions of native code and the queue of a pool of threads are all waited for in a futex. It counts
as a lock of Python only where the innermost frame belongs to Python's own modules for threads, or where the text of the
user's line takes or waits for something; any other wait in a futex is native code that computes with its own threads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.derive.python.stack_samples import Sample

Reason = Literal[
    "lock",
    "sleep",
    "file",
    "pipe",
    "socket",
    "client",
    "process",
    "events",
    "runs",
    "gil",
    "native",
    "other",
    "unknown",
]
"""``client``: the next request of somebody who is connected; ``events``: whichever of several descriptors is first;
``native``: threads of native code; ``unknown``: not looked at."""
_THREADING = re.compile(r"/(threading|queue|concurrent/futures/\w+|multiprocessing/\w+|asyncio/\w+)\.py$")
_INSTALLED = ("/site-packages/", "/dist-packages/")
_TAKES = re.compile(r"\bwith\b|\.(acquire|get|put|join|wait|wait_for|result|recv|map)\b")
"""Text of a line that takes a lock, or waits for a queue, an event, a thread or a result."""
_ENDS = frozenset({"join", "_wait_for_tstate_lock", "_shutdown"})
"""Functions in which a thread waits for the end of another."""
_OF_KINDS: dict[str, Reason] = {
    "file": "file",
    "pipe": "pipe",
    "socket": "socket",
    "client": "client",
    "process": "process",
    "events": "events",
}
_OF_CALLS: dict[str, Reason] = {
    "running": "runs",
    "gil": "gil",
    "sleep": "sleep",
    "accept": "client",
    "accept4": "client",
    "epoll_wait": "events",
    "epoll_pwait": "events",
    **dict.fromkeys(("open", "openat", "close", "rename", "renameat", "renameat2", "unlink", "unlinkat"), "file"),
    **dict.fromkeys(("sync", "syncfs", "stat", "newfstatat", "statx"), "file"),
}
"""Calls that say it whatever their descriptor is."""


def reason(sample: Sample, source_of: Callable[[str], str | None]) -> Reason:
    """What the thread waited for at a sample.

    Args:
        sample: the sample.
        source_of: the text of a user's file, None if it is not known.
    """
    wait = sample.wait
    if wait is None:
        return "unknown"
    if wait.call in _OF_CALLS:
        return _OF_CALLS[wait.call]
    if wait.call == "futex":
        return "lock" if takes_lock(sample, source_of) else "native"
    return _OF_KINDS.get(wait.kind, "other")


def takes_lock(sample: Sample, source_of: Callable[[str], str | None]) -> bool:
    """Whether the innermost frame waits for a lock, a queue or a thread: by its module, of the user's by its text."""
    leaf = sample.leaf
    if not leaf.own:
        return bool(_THREADING.search(leaf.file)) and not any(part in leaf.file for part in _INSTALLED)
    lines = (source_of(leaf.file) or "").splitlines()
    return 0 < leaf.line <= len(lines) and bool(_TAKES.search(lines[leaf.line - 1]))


def waits_in_lock(sample: Sample) -> bool:
    """Whether the innermost frame is one in which Python waits for what another thread makes, not for its end."""
    if waits_for_end(sample):
        return False
    return bool(_THREADING.search(sample.leaf.file)) or (sample.wait is not None and sample.wait.call == "futex")


def waits_for_end(sample: Sample) -> bool:
    """Whether the innermost frame is one in which a thread waits for the end of another."""
    return sample.leaf.function.rpartition(".")[2] in _ENDS
