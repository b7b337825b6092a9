"""Processes that were the same task one after the other, as one member: a worker that was started again.

What they did is joined in time. Between two of them nothing is known: the first step of each has no own time, so a
restart makes no straggler. Of processes that are the same task at one time (a child that inherited the launcher's
variables), the one with the most steps is the task.

Serves DST001 to DST004 and the report's part on the members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.cluster.member_calls import MemberCalls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.causes.cluster.member import Member


def joined(processes: Iterable[Member]) -> list[Member]:
    """One member for each task."""
    tasks: dict[str, list[Member]] = {}
    for process in sorted(processes, key=lambda one: one.began_unix_ns):
        tasks.setdefault(process.name, []).append(process)
    return [_joined(_one_at_a_time(task)) for task in tasks.values()]


def _one_at_a_time(processes: Sequence[Member]) -> list[Member]:
    """Of processes that overlap in time, the one with the most steps."""
    kept: list[Member] = []
    for process in processes:
        if not kept or process.began_unix_ns >= kept[-1].ended_unix_ns:
            kept.append(process)
        elif process.steps > kept[-1].steps:
            kept[-1] = process
    return kept


def _joined(every: Sequence[Member]) -> Member:
    if len(every) == 1:
        return every[0]
    most = max(every, key=lambda one: one.steps)
    newest = every[-1]
    stepped = [one for one in every if one.steps]
    steps = sum(one.steps for one in stepped)
    same_clock = [one for one in every if one.info.clock_domain is not None]
    same_clock = [one for one in same_clock if one.info.clock_domain == most.info.clock_domain]
    return replace(
        most,
        info=newest.info if newest.info.clock_domain == most.info.clock_domain else most.info,
        calls=_calls(most, same_clock),
        steps=steps,
        step_ns=sum(one.step_ns * one.steps for one in stepped) / steps if steps else 0.0,
        began_unix_ns=every[0].began_unix_ns,
        newest_unix_ns=newest.newest_unix_ns,
        ended_unix_ns=newest.ended_unix_ns,
        folders=tuple(one.folder for one in every if one.folder),
        incarnations=len(every),
    )


def _calls(most: Member, every: Sequence[Member]) -> tuple[MemberCalls, ...]:
    """The calls of the incarnation with the most steps, each with those of the others by the same clock."""
    found = []
    for call in most.calls:
        parts = [other for one in every for other in one.calls if other.name == call.name]
        found.append(_concatenated(parts) if len(parts) > 1 else call)
    return tuple(found)


def _concatenated(parts: Sequence[MemberCalls]) -> MemberCalls:
    usable = []
    for number, part in enumerate(parts):
        mine = part.usable.copy()
        if number and len(mine):
            mine[0] = False
        usable.append(mine)
    return MemberCalls(
        name=parts[0].name,
        entries=np.concatenate([part.entries for part in parts]),
        exits=np.concatenate([part.exits for part in parts]),
        usable=np.concatenate(usable),
    )
