"""A process's mappings and thread names from before perf began to record new ones.

perf would read this itself; with counters of CPUs it would do so for every process of the host.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stepscope.native.formats.perf_data import Comm, Mapping

_ANONYMOUS = "//anon"
"""perf's name for a mapping without a name."""
_PATH_AT = 5
_KERNEL = 1 << 63
"""First address of the kernel."""


class AlreadyThere(NamedTuple):
    """Entries as in perf's file, at time zero, which is before all others."""

    mappings: list[Mapping]
    comms: list[Comm]


def read(pid: int) -> AlreadyThere:
    """Read them for one process.

    Raises:
        OSError: it has gone, or is not ours.
    """
    comms = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text("utf-8", "replace").rstrip("\n")
        except OSError:  # the thread has ended
            continue
        comms.append(Comm(0, pid, int(task.name), name))
    return AlreadyThere(_mappings(pid, Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")), comms)


def _mappings(pid: int, text: str) -> list[Mapping]:
    found = []
    for line in text.splitlines():
        words = line.split(None, _PATH_AT)
        start, end = (int(part, 16) for part in words[0].split("-"))
        if start < _KERNEL:
            name = words[_PATH_AT] if len(words) > _PATH_AT else _ANONYMOUS
            found.append(Mapping(0, pid, pid, start, end - start, int(words[2], 16), name, "x" not in words[1]))
    return found
