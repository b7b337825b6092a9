"""The task of a cluster that a process is: a member of a job."""

from __future__ import annotations

import msgspec

RANK = "rank"
"""Role of members of launchers that only number them."""


class MemberInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a process said last of the cluster that it is a task of (``model.log.cluster.MemberSeen``)."""

    launcher: str
    role: str = ""
    index: int = 0
    rank: int = -1
    """Number among those that train; -1: it does not train."""
    size: int = 0
    """Number of those that train."""
    tasks: int = 0
    """Number of all tasks."""
    job_id: str = ""
    """The same for all tasks of a job; "" if unknown."""
    jobs: dict[str, int] = {}
    """Jobs of a TensorFlow cluster and the number of tasks of each."""
    boot_id: str = ""
    time_namespace: str = ""

    @property
    def name(self) -> str:
        """Name within the job: "worker 1", "ps 0", "rank 3"."""
        return f"{self.role} {self.index}"

    @property
    def text(self) -> str:
        """``worker 1 of 3``, with the tasks of other kinds: ``worker 1 of 3, with 1 ps``."""
        count = self.jobs.get(self.role, self.size)
        others = [f"{number} {role}" for role, number in self.jobs.items() if role != self.role]
        return f"{self.name} of {count}{', with ' if others else ''}{' and '.join(others)}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tasks of the job."""
        jobs = self.jobs or {self.role: self.size}
        return tuple(f"{role} {index}" for role, count in jobs.items() for index in range(count))

    @property
    def clock_domain(self) -> tuple[str, str] | None:
        """Where it is equal, two processes read one monotonic clock; None if unknown."""
        return (self.boot_id, self.time_namespace) if self.boot_id else None
