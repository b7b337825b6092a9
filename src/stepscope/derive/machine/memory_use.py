"""Memory of one process over time, from its samples and from the agent's looks, and how far it was from its limit.

*Own* memory is resident memory without files and shared memory. A limit bounds something larger: a control group's all
its processes (page cache apart, which the kernel takes back), the host's everything that runs, that of the address
space also what was never touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.model.log.memory import MemoryHeld

if TYPE_CHECKING:
    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.records import F64, I64

LimitKind = Literal["control group", "address space", "host"]
_MS, _KIB = 1_000_000, 1024


class Limit(Struct, frozen=True, kw_only=True):
    """What bounds a process, and how much of it was taken. Bytes."""

    kind: LimitKind
    bytes: int
    used: float
    """Taken at the end."""
    peak: float
    """Most that was taken at once."""
    others: float = 0.0
    """Part of ``used`` that is not the process's own memory."""

    @property
    def left(self) -> float:
        """Not taken at the end."""
        return max(0.0, self.bytes - self.used)


class MemoryUse(Struct, frozen=True, kw_only=True):
    """Memory of one process."""

    at_ns: I64
    own: F64
    """Own memory in bytes. Shapes: both [sample], by time."""
    looks: tuple[MemoryHeld, ...]
    limits: tuple[Limit, ...]
    """The one with least left first."""

    @property
    def limit(self) -> Limit | None:
        """The tightest limit; None if none is known."""
        return self.limits[0] if self.limits else None

    def before(self, at_ns: int) -> float | None:
        """Own memory at the last sample until then."""
        known = np.flatnonzero(self.at_ns <= at_ns)
        return float(self.own[known[-1]]) if len(known) else None

    def peak(self, since_ns: int = 0) -> float:
        """Most own memory of the samples since then; 0 without one."""
        mine = self.own[self.at_ns >= since_ns]
        return float(mine.max()) if len(mine) else 0.0


def build(session: Session, worker: Worker) -> MemoryUse:
    """Memory of ``worker``."""
    looks = tuple(sorted(worker.all(MemoryHeld), key=lambda look: look.at))
    table = session.process.take(session.process.pid == worker.info.pid)
    points = {
        int(at): float(rss - max(0, shared))
        for at, rss, shared in zip(table.at_ns, table.rss_bytes, table.shared_bytes, strict=True)
    }
    for look in looks:
        points |= {look.at - age * _MS: float(kib * _KIB) for age, kib in look.series}
        points[look.at] = float(look.own_bytes)
    at = np.array(sorted(points), np.int64)
    own = np.array([points[int(t)] for t in at], float)
    last_space = int(table.vm_bytes[-1]) if len(table) else 0
    spaces = [look.space_bytes for look in looks]
    found = [*_group(session, looks, own), *_address(looks, spaces, last_space), *_host(session, looks, own)]
    return MemoryUse(at_ns=at, own=own, looks=looks, limits=tuple(sorted(found, key=lambda limit: limit.left)))


def _group(session: Session, looks: tuple[MemoryHeld, ...], own: F64) -> list[Limit]:
    memory = session.memory
    rows = memory.take((memory.cgroup_limit_bytes > 0) & (memory.cgroup_bytes >= 0))
    used = (rows.cgroup_bytes - np.maximum(0, rows.cgroup_file_bytes)).astype(float)
    seen = [look for look in looks if look.group_limit > 0]
    if not len(rows) and not seen:
        return []
    bounds = [*rows.cgroup_limit_bytes.tolist(), *(look.group_limit for look in seen)]
    charged = [float(look.group_bytes - look.group_cache) for look in seen]
    others = max(0.0, charged[-1] - seen[-1].own_bytes) if seen else 0.0
    ends = [(int(rows.at_ns[-1]), float(used[-1]))] if len(rows) else []
    ends += [(seen[-1].at, charged[-1])] if seen else []
    peak = max([*used.tolist(), *charged, float(own.max()) + others if len(own) else 0.0])
    bytes_ = int(bounds[-1])
    end = max(ends)[1]
    return [Limit(kind="control group", bytes=bytes_, used=min(end, bytes_), peak=min(peak, bytes_), others=others)]


def _address(looks: tuple[MemoryHeld, ...], spaces: list[int], last: int) -> list[Limit]:
    bound = looks[-1].space_limit if looks else 0
    if not bound:
        return []
    used = float(last or spaces[-1])
    others = max(0.0, float(spaces[-1] - looks[-1].own_bytes))
    return [Limit(kind="address space", bytes=bound, used=used, peak=float(max([*spaces, last])), others=others)]


def _host(session: Session, looks: tuple[MemoryHeld, ...], own: F64) -> list[Limit]:
    memory = session.memory
    rows = memory.take((memory.total_bytes > 0) & (memory.available_bytes >= 0))
    if len(rows):
        used = (rows.total_bytes - rows.available_bytes).astype(float)
        total = int(rows.total_bytes[-1])
        others = max(0.0, float(used[-1]) - (float(own[-1]) if len(own) else 0.0))
        return [Limit(kind="host", bytes=total, used=float(used[-1]), peak=float(used.max()), others=others)]
    if looks and looks[-1].host_limit:
        mine = float(own[-1]) if len(own) else 0.0
        return [Limit(kind="host", bytes=looks[-1].host_limit, used=mine, peak=float(own.max()))]
    return []
