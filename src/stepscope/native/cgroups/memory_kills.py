"""Counters of processes that the kernel has killed for lack of memory.

A kill is counted for the whole host, and in the control group to which the killed process's memory was charged, also
when it is the host that had run out: in version 2 of control groups in all groups above it too, in version 1 in no
other. So where the group of a process has a counter, the host's says nothing about it (docs/decisions/0091).

Source: mm/oom_kill.c, ``__oom_kill_process``; Documentation/admin-guide/cgroup-v2.rst (memory.events) and
cgroup-v1/memory.rst (memory.oom_control); /proc/vmstat: ``oom_kill``, from Linux 4.13.
"""

from __future__ import annotations

import re
from pathlib import Path

from stepscope.native.cgroups import cgroup

_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_GROUP_FILES = ("memory.events", "memory.oom_control")
"""In version 2, in version 1."""


def counters(pid: int | str = "self", host: Path = cgroup.HOST) -> dict[str, int]:
    """{file: kills so far} of the control group to which the memory of a process is charged, and of the host; without
    those that cannot be read.
    """
    of_group = (folder / name for folder in cgroup.folders(pid, "memory", host) for name in _GROUP_FILES)
    group = next((str(file) for file in of_group if count(file) is not None), "")
    found = {file: count(file) for file in (group, host_file(host)) if file}
    return {file: kills for file, kills in found.items() if kills is not None}


def of_group(host: Path = cgroup.HOST) -> int:
    """Kills so far in this process's own control group; 0 if it has no counter."""
    return next((kills for file, kills in counters("self", host).items() if file != host_file(host)), 0)


def host_file(host: Path = cgroup.HOST) -> str:
    """The file with the host's counter."""
    return str(host / "proc/vmstat")


def count(file: Path | str) -> int | None:
    """The kills that a file counts; None if it cannot be read."""
    found = _COUNT.search(cgroup.read(Path(file)))
    return int(found[1]) if found is not None else None
