"""Whether the kernel killed the job for lack of memory: surely, perhaps, or not.

The kernel's log names whom it killed. A counter only says that somebody was, in the job's control group or, where that
has none, anywhere on the host. The kernel takes the process that holds most of what has run out: it was the job's if
what its processes did not hold was less than the largest of them held. Else it may have been, and somebody may have
killed the job at that moment.

Serves MEM003, MEM004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stepscope.derive.machine import memory_use
from stepscope.model.session.session import Worker, WorkerInfo
from stepscope.tables.records import RecordTable

if TYPE_CHECKING:
    from stepscope.derive.machine.memory_use import Limit, MemoryUse
    from stepscope.derive.view import SessionView

KILLED = frozenset({-9, 137})
FULL = 0.8
"""Share of the host's memory in use from which the kernel may have killed for it; a control group always may."""

LATE_NS = 5_000_000_000
"""What was asked for at once longer before the end was not what ended it."""


class MemoryKill(Struct, frozen=True, kw_only=True):
    """The job ended as one does that is killed for lack of memory, when the kernel killed somebody for that."""

    sure: bool
    """Flag: it was a process of the job."""
    by: Literal["log", "group", "host"]
    """Where the kill was seen: the kernel's log, the counter of the job's control group, that of the host."""
    own: float = 0.0
    """Memory that the job's largest process was last seen to hold, or to ask for. Bytes, as ``others``."""
    others: float = 0.0
    """The most that processes of others can have held when the limit was reached."""


def build(view: SessionView) -> MemoryKill | None:
    """None: the job was not killed, no process was for lack of memory, or none was lacking."""
    manifest = view.session.manifest
    if not manifest.memory_killed or not (manifest.exit_code in KILLED or manifest.exit_code is None):
        return None
    workers = view.workers or [Worker(info=WorkerInfo(key="job", pid=manifest.job_pid), records=RecordTable.empty())]
    uses = sorted((memory_use.build(view.session, worker) for worker in workers), key=lambda use: use.peak())
    limit, by = limit_of(uses[-1]), manifest.memory_killed_by or "host"
    if by == "log":
        return MemoryKill(sure=True, by=by)
    if limit is None or (by == "host" and manifest.memory_killed_by and limit.kind != "host"):
        return None if by == "host" else MemoryKill(sure=False, by=by)
    ends = [float(use.own[-1]) if len(use.own) else 0.0 for use in uses]
    ends[-1] += asked_at_once(uses[-1], manifest.ended_ns)
    own, others = min(ends[-1], limit.bytes), max(0.0, limit.bytes - sum(ends))
    return MemoryKill(sure=by == "group" and own >= others, by=by, own=own, others=others)


def asked_at_once(use: MemoryUse, ended_ns: int) -> float:
    """Address space that was taken at once just before the end, more than there was memory left; 0: none."""
    late = [look for look in use.looks if look.reason == "at-once" and ended_ns - look.at <= LATE_NS]
    return float(late[-1].space_bytes - late[-1].space_before_bytes) if late else 0.0


def limit_of(use: MemoryUse) -> Limit | None:
    """The limit for which the kernel kills: one of the address space does not."""
    killers = [n for n in use.limits if n.kind == "control group" or n.peak >= FULL * n.bytes]
    return next((n for n in killers if n.kind != "address space"), None)
