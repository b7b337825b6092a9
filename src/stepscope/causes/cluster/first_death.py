"""Which task of a job that failed ended first, where one session holds them all: their launcher ends the others.

A process that a signal ends runs no exit handlers; which signal it was is known from Linux 6.15 on.

Serves the report's diagnostics.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from stepscope.causes.cluster import members
from stepscope.tables.units import format_ns, format_number_of

if TYPE_CHECKING:
    from stepscope.causes.cluster.member import Member
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import WorkerInfo


def build(view: SessionView) -> str:
    """A sentence; "" if the job did not fail, or if all of its tasks ended by themselves."""
    code = view.session.manifest.exit_code
    found = view.get(members.build)
    if not code or code < 0 or view.session.peers.members or len(found) <= 1:
        return ""
    newest = {
        (worker.info.member.name, view.session.manifest.started_unix_ns + worker.info.started_ns): worker.info
        for worker in view.workers
        if worker.info.member is not None
    }
    ends = [(member, newest[member.name, member.newest_unix_ns]) for member in found]
    if all(info.clean_exit for _, info in ends):
        return ""
    ends.sort(key=lambda end: end[0].ended_unix_ns)
    first, info = _first(ends)
    how = "ended by itself (an error, or an exit)" if info.clean_exit else _how(info.signal)
    after = f"after {format_number_of(str(first.steps), 'steps')}" if first.steps else "before its steps"
    rest = [(member, its) for member, its in ends if member is not first and not its.clean_exit]
    later = [_followed(member, first, its.signal) for member, its in rest]
    return f"{first.name} was the first to end: it {how}, {after}{''.join(later[:MOST])}"


UNSURE_NS = 1_500_000_000
"""So much before a process is killed its last record may be: its agent's thread writes one each second."""


def _first(ends: list[tuple[Member, WorkerInfo]]) -> tuple[Member, WorkerInfo]:
    """The end that came first, of all in the order of their times.

    Launchers end the others by SIGTERM: where another task ended in another way at about the same time, it was first.
    """
    member, info = ends[0]
    if info.clean_exit or info.signal != signal.SIGTERM:
        return ends[0]
    until = member.ended_unix_ns + UNSURE_NS
    others = (end for end in ends if end[0].ended_unix_ns <= until and end[1].signal != signal.SIGTERM)
    return next((end for end in others if end[1].clean_exit or end[1].signal), ends[0])


_NAMES = {one.value: one.name for one in signal.Signals}
MOST = 3
"""Most other tasks that are named."""


def _how(number: int | None) -> str:
    if number is None:
        return "was killed, or left by os._exit"
    return (
        f"was killed by {_NAMES.get(number, f'signal {number}')}"
        if number
        else "left without its exit handlers (os._exit)"
    )


def _followed(member: Member, first: Member, number: int | None) -> str:
    after_ns = member.ended_unix_ns - first.ended_unix_ns
    later = f"{format_ns(after_ns)} later" if after_ns > 0 else "at about the same time"
    if number == 0:
        return f"; {member.name} left {later}"
    by = f" by {_NAMES.get(number, f'signal {number}')}" if number else ""
    return f"; {member.name} was killed{by} {later}, as {member.info.launcher} ends the others"
