"""What a process had mapped, and what its threads were called, before perf began to tell what is new.

perf would read this itself; with counters of CPUs it would read it of every process of the host.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stepscope.formats.native.perf_data import Comm, Mapping

_ANONYMOUS = "//anon"
"""As perf calls what has no name."""
_PATH_AT = 5
_KERNEL = 1 << 63
"""From here on addresses are the kernel's."""


class AlreadyThere(NamedTuple):
    """As perf's file has them; at no time, which is before any other."""

    mappings: list[Mapping]
    comms: list[Comm]


def read(pid: int) -> AlreadyThere:
    """Of one process.

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
