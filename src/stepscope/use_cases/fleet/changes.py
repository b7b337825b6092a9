"""Answers ``fleet changes``: what came to cost more or less over the sessions of each job, beyond chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stepscope.experiments import change_points
from stepscope.fleet import history
from stepscope.model.api.fleet import FleetAnswer, FleetChange, FleetFollowed
from stepscope.use_cases.fleet import asking, judging, moves, slow_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.fleet.history import Followed, History
    from stepscope.model.api.fleet import ChangeKind, ChangesBy
    from stepscope.tables.records import F64
    from stepscope.use_cases.fleet.asking import Scope
    from stepscope.use_cases.fleet.judging import Claim, Judged
    from stepscope.use_cases.fleet.moves import Shown

_KINDS: tuple[ChangeKind, ...] = ("rose", "fell", "moved", "went-away")
_LARGE, _MIDDLE = 0.1, 0.01
"""Shares of the job's time by which places are put into three classes."""
NOTHING, ROSE, CANNOT_TELL = 0, 1, 3
"""Exit codes of ``--exit-code`` (docs/exit-codes.md)."""


def changes(scope: Scope, by: ChangesBy, since: str) -> FleetAnswer:
    """The changes of all jobs, the costliest first; raises as ``asking.jobs``.

    ``since``: only those that began on this day or later; earlier sessions are what later ones are compared with.
    """
    least = change_points.MIN_RUNS
    jobs, read = asking.ask(
        scope, history.read_of(by), lambda engine: history.histories(engine, scope.asked, by, least)
    )
    shown, followed = of_histories(jobs, by, since) if by != "host" else ([], [])
    hosts, compared = slow_hosts.of_histories(jobs) if by == "host" else ([], 0)
    return FleetAnswer(
        question="changes",
        by=by,
        sort="wall",
        filters=scope.filters,
        parts=read,
        since=since,
        level=change_points.LEVEL,
        changes=tuple(shown[: scope.asked.limit]),
        followed=tuple(followed),
        slow_hosts=tuple(hosts[: scope.asked.limit]),
        compared_hosts=compared,
    )


def exit_code(answer: FleetAnswer) -> int:
    """1: something costs more than before, or than on other hosts; 3: nothing could be compared; else 0."""
    if answer.slow_hosts or any(one.kind == "rose" for one in answer.changes):
        return ROSE
    compared = answer.compared_hosts or any(one.tests for one in answer.followed)
    return NOTHING if compared else CANNOT_TELL


def of_histories(
    jobs: Sequence[History], by: ChangesBy, since: str = ""
) -> tuple[list[FleetChange], list[FleetFollowed]]:
    """The changes of these jobs, and what was followed in each: the wrong claims of all together are held."""
    judged = [judging.judged(job, by, since) for job in jobs]
    chances = np.concatenate([one.chances for one in judged]) if judged else np.zeros(0)
    claimed = change_points.discoveries(chances)
    found: list[FleetChange] = []
    followed, first = [], 0
    for one in judged:
        claims, of_runs = judging.claims(one, claimed[first : first + len(one.chances)].tolist())
        first += len(one.chances)
        found += [_change(shown, one, len(chances)) for shown in moves.united(claims)]
        followed.append(_watched(one, of_runs, len(chances)))
    return sorted(found, key=lambda change: (_KINDS.index(change.kind), -abs(change.hours), change.chance)), followed


def _change(shown: Shown, one: Judged, tests: int) -> FleetChange:
    claim, job = shown.claim, one.history
    numbers, what = claim.numbers, claim.numbers.what[claim.at]
    runs = numbers.runs
    last, first = int(runs[claim.main - 1]), int(runs[claim.main])
    until = claim.went_away or len(runs)
    begin = max((point for point in claim.points if point < claim.main), default=0)
    end = min((point for point in claim.points if point > claim.main), default=len(runs))
    shares = None if numbers.share is None else numbers.share[claim.at]
    steps = np.where(job.steps > 0, job.steps, 1.0)[runs][claim.main : until]
    seen = float(judging.smallest(numbers, judging.splits_of(numbers, one.old), tests)[claim.at])
    before = {job.hosts[run] for run in runs[: claim.main].tolist()}
    after = [job.hosts[run] for run in runs[claim.main :].tolist()]
    return FleetChange(
        kind=_kind(shown),
        of=numbers.of,
        project=job.job.project,
        program=job.job.program,
        model=job.job.model,
        device=job.job.device,
        name=what.name,
        words=what.words,
        file=what.file,
        line=what.line,
        function=what.function,
        measure=numbers.measure,
        started_unix_s=int(job.started_s[first]),
        day=job.days[first],
        session=job.sessions[first],
        commit_before=job.commits[last],
        commit_after=job.commits[first],
        other_hosts=2 * sum(host not in before for host in after) > len(after),
        sessions_before=claim.main - begin,
        sessions_after=end - claim.main,
        before_ns=claim.effect.before,
        after_ns=claim.effect.after,
        ratio=claim.effect.ratio,
        low=claim.effect.low,
        high=claim.effect.high,
        before_ratio=None if shares is None else float(shares[begin : claim.main].mean()),
        after_ratio=None if shares is None else float(shares[claim.main : end].mean()),
        hours=claim.more_ns * float(steps.sum()) / 3.6e12,
        chance=claim.chance,
        smallest_ratio=seen if math.isfinite(seen) else None,
        ended_unix_s=None if claim.went_away is None else int(job.started_s[runs[claim.went_away]]),
        to="" if shown.to is None else _place(shown.to),
        also=tuple(map(_place, shown.also)),
    )


def _kind(shown: Shown) -> ChangeKind:
    if shown.to is not None:
        return "moved"
    if shown.claim.went_away is not None:
        return "went-away"
    return "rose" if shown.claim.more_ns > 0 else "fell"


def _place(claim: Claim) -> str:
    return place_of(claim.numbers.what[claim.at])


def place_of(what: Followed) -> str:
    """``train.py:41 make``, ``train.py make``, ``INP003``."""
    where = f"{what.file}:{what.line}" if what.line else what.file
    return " ".join(filter(None, (what.name, where, what.function)))


def _watched(one: Judged, of_runs: int, tests: int) -> FleetFollowed:
    job = one.history
    seen = {
        numbers.of: judging.smallest(numbers, judging.splits_of(numbers, one.old), tests) for numbers in one.numbers
    }
    found = next((numbers for numbers in one.numbers if numbers.share is not None), None)
    classes = dict(_by_share(found.share, seen[found.of])) if found is not None and found.share is not None else {}
    return FleetFollowed(
        project=job.job.project,
        program=job.job.program,
        model=job.job.model,
        device=job.job.device,
        sessions=len(job.sessions),
        new=len(job.sessions) - one.old,
        tests=len(one.chances),
        measure=None if found is None else found.measure,
        step_smallest=_finite(seen["step"]) if "step" in seen else None,
        cpu_smallest=_finite(seen["cpu"]) if "cpu" in seen else None,
        large_smallest=classes.get("large"),
        middle_smallest=classes.get("middle"),
        small_smallest=classes.get("small"),
        of_runs=of_runs,
    )


def _by_share(share: F64, seen: F64) -> Iterator[tuple[str, float | None]]:
    """The median of the smallest visible changes, by how large a share of the job places have."""
    mean = share.mean(axis=1)
    for name, low, high in (("large", _LARGE, math.inf), ("middle", _MIDDLE, _LARGE), ("small", 0.0, _MIDDLE)):
        mine = seen[(mean >= low) & (mean < high)]
        if len(mine):
            yield name, _finite(mine)


def _finite(values: F64) -> float | None:
    middle = float(np.median(values))
    return middle if math.isfinite(middle) else None
