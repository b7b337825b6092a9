"""How much more memory a control group may hold before the kernel kills in it: the room under its limit.

What the kernel can take back by itself does not fill a group: it kills only where nothing is left to reclaim. So files
in the page cache do not count, mapped ones included; anonymous and shared memory (the rings) and the kernel's own do.

Source: mm/memcontrol.c, ``try_charge_memcg``; Documentation/admin-guide/cgroup-v2.rst (memory.current, memory.stat) and
cgroup-v1/memory.rst (memory.usage_in_bytes, ``total_`` fields of memory.stat).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stepscope.native.cgroups import cgroup

_STAT, _CURRENT, _USAGE = "memory.stat", "memory.current", "memory.usage_in_bytes"
_RECLAIMED = (b"inactive_file", b"active_file", b"slab_reclaimable")
_PREFIX = b"total_"
"""Of the fields of version 1 that include the groups below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes of one group."""

    limit_bytes: int
    held_bytes: int
    """Without what the kernel would take back."""

    @property
    def left_bytes(self) -> int:
        """What may still be taken."""
        return max(0, self.limit_bytes - self.held_bytes)


def tightest(host: Path = cgroup.HOST) -> Room | None:
    """The room of whichever group around this process has the least left; None: no group has a limit.

    Cost: 40 us for each group with a limit, and 20 us for each without.
    """
    found = None
    for folder in cgroup.folders("self", "memory", host):
        limit = cgroup.memory_limit(folder)
        room = _of(folder, limit) if limit > 0 else None
        if room is not None and (found is None or room.left_bytes < found.left_bytes):
            found = room
    return found


def _of(folder: Path, limit: int) -> Room | None:
    used = cgroup.number(folder / _CURRENT)
    prefix = b""
    if used < 0:
        used, prefix = cgroup.number(folder / _USAGE), _PREFIX
    if used < 0:
        return None
    words = cgroup.read(folder / _STAT).encode().split()
    fields = dict(zip(words[::2], words[1::2], strict=False))
    reclaimed = sum(int(fields.get(prefix + name, 0)) for name in _RECLAIMED)
    return Room(limit_bytes=limit, held_bytes=max(0, used - reclaimed))
