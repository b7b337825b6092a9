"""One task of a job: what of it is compared with the other tasks.

Serves DST001 to DST006 and the report's part on the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.derive.cluster.member_calls import MemberCalls
    from stepscope.derive.view import SessionView
    from stepscope.model.report.components import ComponentName
    from stepscope.model.session.member import MemberInfo
    from stepscope.tables.records import F64


class Member(Struct, frozen=True, kw_only=True):
    """A task of the job."""

    info: MemberInfo
    folder: str
    """Its member session's folder; "" if it is a process of this session."""
    pid: int
    host: str
    open: Callable[[], SessionView]
    """Its view, of its process alone."""
    calls: tuple[MemberCalls, ...]
    """The calls in which its steps may wait; empty if it makes no steps."""
    steps: int
    step_ns: float
    """Mean steady step; 0 without steps."""
    samples: float
    """Samples of the mean steady step; 0: unknown, or no steps."""
    components: Mapping[ComponentName, float]
    """Mean time of each component of its step."""
    computes_ns: F64 | None
    """Time in which ops compute, and nothing else, in each traced step; None without a trace of enough steps, or of
    steps without an exchange."""
    exchange_ratio: float | None = None
    """Share of its traced steps that lies in exchanges with others, waits included; None like ``computes_ns``."""
    serves: bool = False
    """Flag: it only serves what others ask for: a parameter server, a worker of a coordinator."""
    began_unix_ns: int = 0
    newest_unix_ns: int = 0
    """When the newest of its incarnations began."""
    ended_unix_ns: int = 0
    folders: tuple[str, ...] = ()
    """Member sessions of all its incarnations, in the order of their begins; empty if there is one."""
    incarnations: int = 1
    """Number of processes that were this task, one after the other."""

    @property
    def name(self) -> str:
        """Name within the job."""
        return self.info.name

    @property
    def samples_per_s(self) -> float | None:
        """Samples per second of steady steps; None if unknown."""
        return self.samples / self.step_ns * 1e9 if self.samples and self.step_ns else None
