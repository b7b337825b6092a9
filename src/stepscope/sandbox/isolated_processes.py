"""Ends all that is left of a trial: every process in one of its namespaces, whatever its parent is by now.

A daemon leaves its parent, its session and its process group, but not its namespaces. Standard library only: the guard
runs it, too.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import NoReturn

PATIENCE_S = 10.0
"""Time after which a process that does not die is left: it hangs in the kernel."""
_KINDS = ("mnt", "net", "ipc", "user")


def hold(pid: int, namespaces: frozenset[str]) -> list[int]:
    """Descriptors of those of ``namespaces`` that a process is in; while they are open, no others get their numbers.

    Raises:
        OSError: the process has ended.
    """
    kinds = [name.partition(":")[0] for name in sorted(namespaces)]
    return [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]


def own_namespaces() -> frozenset[str]:
    """The namespaces of this process, as ``kind:[inode]``."""
    return _namespaces("self")


def _namespaces(pid: str) -> frozenset[str]:
    """Those of a process; none for one that has ended, waited for or not, or that this user may not look at."""
    try:
        return frozenset(os.readlink(f"/proc/{pid}/ns/{kind}") for kind in _KINDS)
    except OSError:  # of a zombie, the namespace of users can be read, and that of mounts cannot
        return frozenset()


def within(namespaces: frozenset[str]) -> list[int]:
    """Processes in one of ``namespaces``, without this one."""
    pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [int(pid) for pid in pids if namespaces & _namespaces(pid)]


def end_all(namespaces: frozenset[str]) -> list[int]:
    """Kill all other processes in one of ``namespaces`` and wait for their end; return those that did not die.

    The caller is in them, or holds them: else their numbers could be those of other namespaces by now.
    """
    deadline = time.monotonic() + PATIENCE_S
    while namespaces and (left := within(namespaces)):
        if time.monotonic() > deadline:
            return left
        killed = [fd for fd in (_kill(pid, namespaces) for pid in left) if fd >= 0]
        for fd in killed:
            select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            os.close(fd)
    return []


def _kill(pid: int, namespaces: frozenset[str]) -> int:
    """Kill a process, unless its number belongs to another one by now; return a descriptor that tells of its end.

    -1: it has ended.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return -1
    try:
        if namespaces & _namespaces(str(pid)):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            return fd
    except OSError:  # it has just ended
        pass
    os.close(fd)
    return -1


def guard(pipe: int, namespaces: frozenset[str]) -> NoReturn:
    """Wait until the launcher has closed the other end of ``pipe``, be it by dying; then end what is left, and exit.

    A launcher that ends in order ends this process with the others. It is in the namespaces itself: the kernel does
    not use their numbers again while it looks for them.
    """
    os.setsid()
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while os.read(pipe, 4096):
        pass
    end_all(namespaces)
    os._exit(0)
