"""Identifies other processes as tasks of the job's own cluster: they share its work, and are not its rivals.

A process is such a task if its environment has the same cluster in TF_CONFIG as a process of the job, or if it has
TensorFlow mapped and a TCP connection on this host with a process of the job, over TensorFlow's gRPC. A process of
another user cannot be examined; its status does not change.

Sources: /proc/PID/environ, maps and fd; /proc/net/tcp (Documentation/networking/proc_net_tcp.rst). TF_CONFIG:
tf.distribute.cluster_resolver.TFConfigClusterResolver.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from stepscope.collector.samplers.sockets import socket_inodes

_CONFIG = b"TF_CONFIG="
_LIBRARY = b"/libtensorflow"
_ESTABLISHED = b"01"
_INODE = 9
"""Column of /proc/net/tcp."""
_TRIES = frozenset({1, 2, 4, 8, 16, 32, 64})
"""Numbers of looks at a busy process at which it is examined: a task connects some seconds after its start."""


class ClusterTasks:
    """Answers for processes that use CPU, each examined at a few looks until it is known to be a task."""

    def __init__(self) -> None:
        """Begin without known processes."""
        self._tasks: set[int] = set()
        self._asked: Counter[int] = Counter()

    def has(self, pid: int, measured: frozenset[int]) -> bool:
        """Whether ``pid`` is a task of the cluster of the ``measured`` processes, as far as known so far."""
        if pid in self._tasks:
            return True
        self._asked[pid] += 1
        if self._asked[pid] in _TRIES and (_same_cluster(pid, measured) or _speaks_with(pid, measured)):
            self._tasks.add(pid)
        return pid in self._tasks

    def forget(self, pid: int) -> None:
        """Drop a process that has ended."""
        self._tasks.discard(pid)
        self._asked.pop(pid, None)


def _same_cluster(pid: int, measured: frozenset[int]) -> bool:
    cluster = _cluster(pid)
    return cluster is not None and any(_cluster(one) == cluster for one in measured)


def _cluster(pid: int) -> object:
    """The cluster in the environment that a process was started with; None if there is none."""
    for variable in _content(Path(f"/proc/{pid}/environ")).split(b"\0"):
        if variable.startswith(_CONFIG):
            try:
                config = json.loads(variable[len(_CONFIG) :])
            except ValueError:
                return None
            return (config.get("cluster") or None) if isinstance(config, dict) else None
    return None


def _speaks_with(pid: int, measured: frozenset[int]) -> bool:
    mine = [inode for one in measured for inode in socket_inodes(one)]
    if not mine or _LIBRARY not in _content(Path(f"/proc/{pid}/maps")):
        return False  # a job without sockets is spared the table of connections, milliseconds of the kernel's
    ends: dict[int, tuple[bytes, bytes]] = {}
    for family in ("tcp", "tcp6"):
        for row in _content(Path(f"/proc/{pid}/net/{family}")).split(b"\n")[1:]:
            words = row.split()
            if len(words) > _INODE and words[3] == _ESTABLISHED:
                ends[int(words[_INODE])] = (words[1], words[2])
    theirs = {(there, here) for here, there in (ends[i] for i in socket_inodes(pid) if i in ends)}
    return bool(theirs) and any(ends.get(inode) in theirs for inode in mine)


def _content(path: Path) -> bytes:
    """A file of /proc; empty if it is gone or unreadable."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
