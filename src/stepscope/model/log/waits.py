"""Log lines about what sampled threads wait for."""

from __future__ import annotations

from stepscope.model.event import Event


class WaitSeen(Event, tag="wait", frozen=True, kw_only=True):
    """What a thread did when the agent looked at it: ran, or waited in a system call."""

    id: int
    call: str
    """The system call, such as futex or recvfrom; or: running | gil (the interpreter lock) | page-fault | sleep."""
    kind: str = ""
    """What the call waits for: "file" | "pipe" | "socket" | "client" (a connection made by the other end) | "device" |
    "process" | "events" (of several descriptors) | "" (nothing that has a name)."""
    target: str = ""
    """Path of the file or device, HOST:PORT or path of the peer, name of the process; "" if not known."""
    bytes: int = 0
    """Size that the call was given; 0: it has none."""
    timed: bool = False
    """Whether the wait ends by itself after some time."""


class ThreadCounts(Event, tag="thread_counts", frozen=True, kw_only=True):
    """Counters of a thread since its start, read in seconds in which it was seen to wait."""

    thread: int
    waits: int = 0
    """Times that it gave up its CPU by itself, for whatever reason."""
    reads: int = 0
    """Calls that read; of sockets, only those by read(2)."""
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0


WaitEvent = WaitSeen | ThreadCounts
