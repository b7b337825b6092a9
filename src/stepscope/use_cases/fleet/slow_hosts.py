"""Hosts on which the same job is slower than on all others, and whether it is the CPU or a wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.experiments import change_points
from stepscope.model.api.fleet import FleetSlowHost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.experiments.change_points import Change
    from stepscope.fleet.history import History
    from stepscope.model.api.fleet import HostResource
    from stepscope.tables.records import F64, Bool

_CPU_SHARE = 0.5
"""Share of the longer step that CPU time must explain to be its cause."""


class _Compared(Struct, frozen=True, kw_only=True):
    """A host's sessions of a job, and those of all other hosts."""

    history: History
    host: str
    there: Bool
    """bool[run]"""
    chance: float


def of_histories(jobs: Sequence[History]) -> tuple[list[FleetSlowHost], int]:
    """The hosts on which a step takes longer, beyond chance, the most first; and how many were compared.

    Wrong claims among all are held as those of changes are. Where a host came into use late, a change of the job looks
    like one of the host.
    """
    compared = [one for job in jobs for one in _of_job(job)]
    claimed = change_points.discoveries(np.array([one.chance for one in compared]))
    found = [_slow(one) for one, kept in zip(compared, claimed.tolist(), strict=True) if kept]
    slower = [one for one in found if one.ratio > 1.0]
    return sorted(slower, key=lambda one: -one.ratio), len(compared)


def _of_job(history: History) -> Iterator[_Compared]:
    known = np.isfinite(history.step_ns) & (history.step_ns > 0)
    for host in sorted(set(history.hosts)):
        there = np.array([one == host for one in history.hosts])
        if min((there & known).sum(), (~there & known).sum()) >= change_points.MIN_RUNS:
            chance = _chance(history.step_ns[known], there[known])
            yield _Compared(history=history, host=host, there=there, chance=chance)


def _chance(values: F64, there: Bool) -> float:
    """The probability that equal hosts differ by as much (rank-sum test)."""
    ordered = np.concatenate((values[there], values[~there]))
    begin, end = np.array([0]), np.array([int(there.sum())])
    return math.erfc(abs(float(change_points.scores(ordered[None], begin, end)[0, 0])) / math.sqrt(2.0))


def _slow(one: _Compared) -> FleetSlowHost:
    job = one.history
    wall = _change(job.step_ns, one.there)
    cpu = _change(job.job_cpu_ns / np.where(job.steps > 0, job.steps, 1.0), one.there)
    return FleetSlowHost(
        host=one.host,
        project=job.job.project,
        program=job.job.program,
        model=job.job.model,
        device=job.job.device,
        sessions=int(one.there.sum()),
        other_sessions=int((~one.there).sum()),
        step_ns=wall.after,
        other_step_ns=wall.before,
        ratio=wall.ratio or 1.0,
        low=wall.low or 0.0,
        high=wall.high or 0.0,
        cpu_ratio=cpu.ratio,
        resource=_resource(wall, cpu),
        chance=one.chance,
    )


def _change(values: F64, there: Bool) -> Change:
    known = np.isfinite(values)
    before, after = values[~there & known], values[there & known]
    if not len(before) or not len(after):
        before = after = np.zeros(1)
    return change_points.change(before, after)


def _resource(wall: Change, cpu: Change) -> HostResource:
    """cpu: its CPU time is longer by half of what the step is, or more; wait: by less; "": not known."""
    if cpu.ratio is None:
        return ""
    return "cpu" if cpu.after - cpu.before >= _CPU_SHARE * (wall.after - wall.before) else "wait"
