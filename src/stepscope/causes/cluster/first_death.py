"""Which task of a job that failed ended first, where one session holds them all: their launcher ends the others.

A process that a signal ends runs no exit handlers; which signal it was is known from Linux 6.15 on.

Serves the report's diagnostics.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from stepscope.causes.cluster import members
from stepscope.units import format_ns, format_number_of

if TYPE_CHECKING:
    from stepscope.causes.cluster.member import Member
    from stepscope.derive.view import SessionView


def build(view: SessionView) -> str:
    """A sentence; "" if the job did not fail, or if all of its tasks ended by themselves."""
    code = view.session.manifest.exit_code
    found = view.get(members.build)
    if not code or code < 0 or view.session.peers.members or len(found) <= 1:
        return ""
    handled = {worker.info.pid for worker in view.workers if worker.info.clean_exit}
    signals = {worker.info.pid: worker.info.signal for worker in view.workers}
    if all(member.pid in handled for member in found):
        return ""
    first, *rest = sorted(found, key=lambda member: member.ended_unix_ns)
    how = "ended by itself (an error, or an exit)" if first.pid in handled else _how(signals.get(first.pid))
    after = f"after {format_number_of(str(first.steps), 'steps')}" if first.steps else "before its steps"
    later = [_followed(member, first, signals.get(member.pid)) for member in rest if member.pid not in handled]
    return f"{first.name} was the first to end: it {how}, {after}{''.join(later[:MOST])}"


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
    later = format_ns(member.ended_unix_ns - first.ended_unix_ns)
    if number == 0:
        return f"; {member.name} left {later} later"
    by = f" by {_NAMES.get(number, f'signal {number}')}" if number else ""
    return f"; {member.name} was killed{by} {later} later, as {member.info.launcher} ends the others"
