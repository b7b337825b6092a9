"""Processes that the kernel has killed for lack of memory: in the control groups of this process, and on the host.

Source: Documentation/admin-guide/cgroup-v2.rst (memory.events), cgroup-v1/memory.rst (memory.oom_control) and
/proc/vmstat: ``oom_kill``, from Linux 4.13.
"""

from __future__ import annotations

import re
from pathlib import Path

from stepscope.collector.cgroups import cgroup

_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def count(host: Path = cgroup.HOST) -> int:
    """How many there were so far, over all counters; 0 where none is readable. One kill is counted by several: only a
    rise says something.
    """
    files = [host / "proc/vmstat"]
    for folder in cgroup.folders("self", "memory", host):
        files += [folder / "memory.events", folder / "memory.oom_control"]
    found = [_COUNT.search(cgroup.read(file)) for file in files]
    return sum(int(one[1]) for one in found if one is not None)
