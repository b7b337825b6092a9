"""Which of a job's series changed: every number that is compared, its score, and what becomes of a claim."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.experiments import change_points
from stepscope.fleet.history import Followed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.experiments.change_points import Change, Splits
    from stepscope.fleet.history import History
    from stepscope.model.api.fleet import ChangeOf, ChangesBy, Measure
    from stepscope.tables.records import F64, I64

KNOWN = 0.9
"""Share of a job's sessions that must have CPU times of lines; else the times of their threads are compared."""
_FOLLOWED: dict[ChangesBy, ChangeOf] = {"function": "function", "line": "line", "op": "op", "finding": "finding"}
_OTHER_STEPS = 0.05
"""Relative change of the number of steps from which a cost that each run has once would look like one of steps."""
_BACK = 0.5
"""Share of a change that is left at most of one that went away."""


class Numbers(Struct, frozen=True, kw_only=True):
    """Several series over the same sessions."""

    of: ChangeOf
    measure: Measure
    runs: I64
    """Which of the job's sessions these are."""
    what: tuple[Followed, ...]
    a_step: F64
    """float64[series, run]: ns a step, that of a run where steps are not known."""
    share: F64 | None = None
    """The same as a share of the job's time of this measure."""


class Claim(Struct, frozen=True, kw_only=True):
    """A series that changed, by more than chance."""

    numbers: Numbers
    at: int
    """The series."""
    points: tuple[int, ...]
    """Splits, of ``numbers.runs``, at its changes."""
    main: int
    """The one of them that is shown."""
    went_away: int | None
    """Split from which on it costs as much as before; None: the change stands."""
    chance: float
    effect: Change

    @property
    def more_ns(self) -> float:
        """What a step costs more."""
        return self.effect.after - self.effect.before


class Judged(Struct, frozen=True, kw_only=True):
    """A job's numbers before it is known how many tests there are in all."""

    history: History
    old: int
    """Sessions before the asked days."""
    numbers: tuple[Numbers, ...]
    chances: F64
    """Of each series of each of the numbers, in their order."""


def judged(history: History, by: ChangesBy, since: str) -> Judged:
    """Everything that can be compared. ``since``: only changes that began on this day or later."""
    old = sum(day < since for day in history.days)
    numbers = [one for one in (*_of_job(history), *_followed(history, by)) if splits_of(one, old)]
    chances = [change_points.best(_agreeing(one), splits_of(one, old)).chance for one in numbers]
    return Judged(
        history=history,
        old=old,
        numbers=tuple(numbers),
        chances=np.concatenate(chances) if chances else np.zeros(0),
    )


def claims(one: Judged, claimed: Sequence[bool]) -> tuple[list[Claim], int]:
    """The changes of the claimed series, and how many more are of the number of steps alone."""
    found, of_runs, next_test = [], 0, 0
    for numbers in one.numbers:
        for at in range(len(numbers.what)):
            if claimed[next_test]:
                claim = _claim(numbers, at, splits_of(numbers, one.old), float(one.chances[next_test]))
                if _each_run_once(claim, one.history):
                    of_runs += 1
                else:
                    found.append(claim)
            next_test += 1
    return found, of_runs


def smallest(numbers: Numbers, among: Splits, tests: int) -> F64:
    """The relative change of each series that would be seen in so many sessions, were it the only one of all tests."""
    score = change_points.needed(change_points.LEVEL / max(tests, 1), among)
    found = change_points.smallest(numbers.a_step, score, among)
    if numbers.share is not None:
        of_share = change_points.smallest(numbers.share, score, among)
        rest = 1.0 - numbers.share.mean(axis=1)
        found = np.maximum(found, np.divide(of_share, rest, out=np.full(len(rest), np.inf), where=rest > 0))
    return found


def splits_of(numbers: Numbers, old: int) -> Splits:
    """The splits of its sessions that are looked at."""
    return change_points.splits(len(numbers.runs), int((numbers.runs < old).sum()))


def _of_job(history: History) -> Iterator[Numbers]:
    """The job itself: the wall time of a step, and the CPU time."""
    series: tuple[tuple[ChangeOf, Measure, F64], ...] = (
        ("step", "wall", history.step_ns),
        ("cpu", "cpu", history.job_cpu_ns / _steps(history)),
    )
    for of, measure, times in series:
        runs = np.flatnonzero(np.isfinite(times) & (times > 0))
        yield Numbers(of=of, measure=measure, runs=runs, what=(Followed(),), a_step=times[None, runs])


def _followed(history: History, by: ChangesBy) -> Iterator[Numbers]:
    """Lines and functions by CPU time where nearly all sessions have it, else by the time of their threads."""
    of = _FOLLOWED.get(by)
    if of is None or not history.followed:
        return
    measure: Measure
    if by in {"op", "finding"}:
        measure = "ops" if by == "op" else "saved"
        known, share, costs = (history.has_costs if by == "op" else history.steps >= 0), history.ratio, history.time_ns
    else:
        clocked = history.sampled_cpu_ns > 0
        sampled = history.sampled_ns > 0
        measure = "cpu" if clocked.sum() >= KNOWN * max(sampled.sum(), 1) else "threads"
        known, costs = (clocked, history.cpu_ns) if measure == "cpu" else (sampled, history.time_ns)
        whole = history.sampled_cpu_ns if measure == "cpu" else history.sampled_ns
        share = costs / np.where(known, whole, 1.0)
    runs = np.flatnonzero(known)
    seen = (costs[:, runs] > 0).sum(axis=1) >= change_points.MIN_RUNS
    what = tuple(one for one, kept in zip(history.followed, seen, strict=True) if kept)
    if what:
        yield Numbers(
            of=of,
            measure=measure,
            runs=runs,
            what=what,
            a_step=(costs / _steps(history))[seen][:, runs],
            share=share[seen][:, runs],
        )


def _steps(history: History) -> F64:
    return np.where(history.steps > 0, history.steps, 1.0)


def _agreeing(numbers: Numbers, at: slice = slice(None)) -> list[F64]:
    return [numbers.a_step[at], *([] if numbers.share is None else [numbers.share[at]])]


def _claim(numbers: Numbers, at: int, among: Splits, chance: float) -> Claim:
    values = np.concatenate(_agreeing(numbers, slice(at, at + 1)))
    points = change_points.points(values, among)
    away = _went_away(values[0], points)
    edges = [0, *points, len(numbers.runs)]
    asked = [one for one in points if one >= among.first] or points
    main = points[0] if away is not None else max(asked, key=lambda one: _difference(values, edges, one))
    place = edges.index(main)
    effect = change_points.change(values[0, edges[place - 1] : main], values[0, main : away or edges[place + 1]])
    return Claim(numbers=numbers, at=at, points=tuple(points), main=main, went_away=away, chance=chance, effect=effect)


def _difference(values: F64, edges: Sequence[int], split: int) -> float:
    """How far the runs from the change before this one until that after it differ at it."""
    place = edges.index(split)
    near = change_points.change(values[0, edges[place - 1] : split], values[0, split : edges[place + 1]])
    return abs(near.after - near.before)


def _went_away(values: F64, points: Sequence[int]) -> int | None:
    """Where the last of several changes brought back what was at first, as well as can be said."""
    if len(points) == 1:
        return None
    first, last = values[: points[0]], values[points[-1] :]
    between = [values[begin:end].mean() for begin, end in pairwise(points)]
    farthest = max(abs(one - first.mean()) for one in between)
    left = change_points.change(first, last)
    same = abs(left.after - left.before) <= min(_BACK * farthest, max(left.reach, 0.1 * farthest))
    return points[-1] if same else None


def _each_run_once(claim: Claim, history: History) -> bool:
    """Whether only the number of steps changed: each run costs what it did, however many steps it has."""
    numbers = claim.numbers
    if numbers.of == "step" or claim.effect.ratio is None:
        return False
    steps = _steps(history)[numbers.runs]
    more_steps = math.log(steps[claim.main :].mean() / steps[: claim.main].mean())
    if abs(more_steps) < _OTHER_STEPS:
        return False
    a_run = numbers.a_step[claim.at] * steps
    whole = a_run[: claim.main].mean(), a_run[claim.main :].mean()
    return min(whole) > 0 and abs(math.log(whole[1] / whole[0])) < abs(math.log(claim.effect.ratio)) / 2.0
