"""Chooses the step among the candidates by an ordered list of rules, each of which drops some.

``RULES`` is the order. A rule maps candidates to those that stay. A rule that would drop all of them drops none, unless
it is in ``ABSOLUTE``. What each rule dropped is kept (``ChosenStep.why``) and shown
as ``session.step_choice`` in report.json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import branches
from stepscope.derive.steps.candidate import ENQUEUE, EVALUATIONS, TRAIN_ROLES
from stepscope.derive.steps.step_candidates import LONG_GAP_FACTOR
from stepscope.model.log.events import Name
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.model.session.session import Worker

    Rule = Callable[[Sequence[Candidate]], list[Candidate]]

SAME_COVER_RATIO = 0.9
"""Share of the best candidate's cover from which candidates compete by meaning."""
PULLS_ONLY_RATIO = 0.3
"""Treat batches pulled from tf.data as the step only if the calls cover less than this share of the pulls' time: a loop
pulls for its validation too."""
TRAINING_RATIO = 0.03
"""Share of the time of trainings and predictions below which training hardly takes time: nothing about it could be a
finding (low severity begins there, decision 0003). Not more: a prediction that is slow per call is often the thing to
fix, and the loop trains all the same (4.8 % in a DQN that calls ``predict`` for each state)."""
PHASES_RATIO = 0.1
"""``TRAINING_RATIO`` if predictions or evaluations alternate with training steps in long runs (self-play, then a fit):
hardly any step contains one, so most of the time would go unmentioned. Medium severity begins here (decision 0003)."""
WITHIN_RATIO = 0.5
"""Share of training steps that must contain predictions; below it, both come in long runs."""
MARKS_ONLY_RATIO = 0.3
"""Treat marks (``Trait.MARK``) as the steps only if the calls cover less than this share of the marks' time: a loop
reads what its calls return, too."""
BURST_FACTOR = 5.0
"""A pause of so many usual pauses of a burst ends the burst. Source: ``step_finder.PAUSE_FACTOR``."""
MIN_BURSTS = 3
"""Pauses without which calls are no bursts: fewer are phases of the program."""
MIN_AROUND = 3
"""Training steps between neighbouring calls from which these calls enclose many steps: they are no steps themselves."""
TRAINERS = frozenset(kinds_with(Trait.TRAINER))
MARKS = frozenset(kinds_with(Trait.MARK))
FORWARD = frozenset({"prediction", "call"})


class DroppedCandidates(Struct, frozen=True, kw_only=True):
    """The candidates that one rule dropped."""

    rule: str
    candidates: tuple[Candidate, ...]


class ChosenStep(Struct, frozen=True, kw_only=True):
    """The remaining candidates, the step first."""

    candidates: tuple[Candidate, ...]
    why: tuple[DroppedCandidates, ...]


def choose(candidates: Sequence[Candidate]) -> ChosenStep:
    """Apply the rules in order."""
    left, why = list(candidates), []
    for name, rule in RULES:
        stay = rule(left)
        if not stay and name not in ABSOLUTE:
            continue
        gone = tuple(one for one in left if not any(one is other for other in stay))
        if gone:
            why.append(DroppedCandidates(rule=name, candidates=gone))
        left = stay
    if len(left) > 1:
        why.append(DroppedCandidates(rule="meaning", candidates=tuple(left[1:])))
    return ChosenStep(candidates=tuple(left), why=tuple(why))


def left_out(why: Iterable[DroppedCandidates]) -> list[Candidate]:
    """The candidates that may be steps all the same, where what was chosen cannot be looked into: the best by what they
    are, then by the time that they cover.
    """
    left = [one for rule in why if rule.rule not in ABSOLUTE for one in rule.candidates]
    return sorted(left, key=lambda one: (one.rank, -one.cover_ns))


def without(why: Iterable[DroppedCandidates], step: Candidate) -> tuple[DroppedCandidates, ...]:
    """What was left out, but for the step."""
    kept = (replace(rule, candidates=tuple(one for one in rule.candidates if one is not step)) for rule in why)
    return tuple(rule for rule in kept if rule.candidates)


def _no_queues(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop session runs that fill queues (they make input) and, if the user makes runs, those of a library's own
    threads.
    """
    runs = [one for one in candidates if one.kind == Kind.SESSION_RUN and one.name.role != ENQUEUE]
    users = any(one.name.call_file for one in runs)
    return [
        one
        for one in candidates
        if one.kind != Kind.SESSION_RUN or (one.name.role != ENQUEUE and (one.name.call_file or not users))
    ]


def _no_evaluations(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop evaluations of a fit: they are part of its work, however much of its time they take."""
    return [one for worker in _workers(candidates) for one in _outside_of_fits(worker, _of(worker, candidates))]


def _outside_of_fits(worker: Worker, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a worker without the evaluations of a fit; those that the program asks for stay."""
    records = worker.records
    fits = [name.id for name in worker.all(Name) if name.role == "fit"]
    loops = (records.kind == Kind.LOOP) & np.isin(records.name, fits)
    trained: dict[int, tuple[int, int]] = {}
    for one in candidates:
        if one.kind == Kind.EXECUTION and one.name.role in TRAIN_ROLES:
            starts = records.start_ns[one.index]
            ends = (records.start_ns + records.dur_ns)[loops & (records.thread == one.thread)]
            trained[one.thread] = int(starts[0]), max(int(starts[-1]), int(ends.max(initial=0)))
    asked = _asked(worker)
    kept = []
    for one in candidates:
        first, last = trained.get(one.thread, (0, -1))
        starts = records.start_ns[one.index]
        inside = int(((starts > first) & (starts < last) & ~intervals.overlapping(asked, starts, starts + 1)).sum())
        if one.name.role not in EVALUATIONS or 2 * inside <= len(starts):
            kept.append(one)
    return kept


def _asked(worker: Worker) -> Intervals:
    """Intervals of the evaluations that the program asks for, those inside of a fit left out."""
    records = worker.records
    evaluations = [name.id for name in worker.all(Name) if name.role in EVALUATIONS]
    own = (records.kind == Kind.LOOP) & np.isin(records.name, evaluations) & ((records.flags & Flag.NESTED) == 0)
    starts = records.start_ns[own]
    return intervals.merge(starts, starts + records.dur_ns[own])


def _explicit(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep the calls of ``stepscope.step()``, which define the step."""
    return [one for one in candidates if one.kind == Kind.STEP]


def _training(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop predictions and evaluations made while a process trains or, if training hardly takes time, the training."""
    return [one for worker in _workers(candidates) for one in _without_forward(worker, _of(worker, candidates))]


def _without_forward(worker: Worker, candidates: Sequence[Candidate]) -> list[Candidate]:
    trainers = [one for one in candidates if one.purpose == "training" and one.kind in TRAINERS]
    if not trainers:
        return list(candidates)
    trained = intervals.union(_fits(worker), _union(trainers))
    first, last = int(trained[0][0]), int(trained[1][-1])
    beside = [one for one in candidates if _is_forward(one) and _mostly_between(one, first, last)]
    predicted = _union(beside)
    spent = intervals.total(trained)
    least = TRAINING_RATIO if _within_steps(beside, trainers) else PHASES_RATIO
    hardly = spent < least * (spent + intervals.total(predicted))
    less = trainers if hardly else beside
    return [one for one in candidates if not any(one is other for other in less)]


def _not_around(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop calls of unknown purpose with several training steps between each two of them, as one of each epoch has."""
    trainers = [one for one in candidates if one.purpose == "training" and one.kind in TRAINERS]
    return [
        one
        for one in candidates
        if one.purpose != "step" or one.kind == Kind.STEP or not any(_around(one, t) for t in trainers)
    ]


def _around(one: Candidate, trainer: Candidate) -> bool:
    """Whether ``MIN_AROUND`` training steps lie between most neighbouring calls on the same thread."""
    if trainer.worker is not one.worker or trainer.thread != one.thread:
        return False
    between = np.diff(np.searchsorted(trainer.starts, one.starts))
    return len(between) > 0 and float(np.median(between)) >= MIN_AROUND


def _within_steps(beside: Sequence[Candidate], trainers: Sequence[Candidate]) -> bool:
    """Whether enough training steps contain predictions, see ``WITHIN_RATIO``."""
    steps = max(trainers, key=lambda one: len(one.index)).starts
    holding = {int(gap) for one in beside for gap in np.unique(np.searchsorted(steps, one.starts))}
    return len(holding) >= WITHIN_RATIO * len(steps)


def _is_forward(one: Candidate) -> bool:
    """Whether calls make results without training."""
    return one.purpose in FORWARD or one.name.role in EVALUATIONS


def _mostly_between(one: Candidate, first: int, last: int) -> bool:
    """Whether most calls lie between two moments. Of evaluations, whose calls may be in gaps, their loops count."""
    asked = _asked(one.worker)[0] if one.name.role in EVALUATIONS else one.starts
    starts = asked if len(asked) else one.starts
    return 2 * int(((starts >= first) & (starts < last)).sum()) > len(starts)


def _fits(worker: Worker) -> Intervals:
    """Intervals of Keras' training calls."""
    records = worker.records
    trains = [name.id for name in worker.all(Name) if name.role in TRAIN_ROLES]
    mine = (records.kind == Kind.LOOP) & np.isin(records.name, trains)
    starts = records.start_ns[mine]
    return intervals.merge(starts, starts + records.dur_ns[mine])


def _union(candidates: Iterable[Candidate]) -> Intervals:
    sides = [(one.starts, one.ends) for one in candidates]
    if not sides:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts, ends = (np.concatenate(side) for side in zip(*sides, strict=True))
    order = np.argsort(starts, kind="stable")
    return intervals.merge(starts[order], ends[order])


def _calls_before_pulls(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop batches pulled from tf.data unless hardly anything is called."""
    calls = [one for one in candidates if one.kind != Kind.NEXT and one.kind not in MARKS]
    best = max((one.cover_ns for one in calls), default=0.0)
    pulls = max((one.cover_ns for one in candidates if one.kind == Kind.NEXT), default=0.0)
    usual = max((_usual_ns(one) for one in calls), default=0.0)
    pulled = max((_usual_ns(one) for one in candidates if one.kind == Kind.NEXT), default=0.0)
    if best >= PULLS_ONLY_RATIO * pulls or usual >= PULLS_ONLY_RATIO * pulled > 0:
        return [one for one in candidates if one.kind != Kind.NEXT]
    return [one for one in candidates if one.cover_ns <= pulls]


def _usual_ns(one: Candidate) -> float:
    """Time from call to call, no part of it longer than is usual: what a first trace takes lies between two pulls."""
    apart = np.diff(one.starts)
    return float(np.minimum(apart, LONG_GAP_FACTOR * float(np.median(apart))).sum())


def _calls_before_marks(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop what only marks turns of a loop (values that are read) unless hardly anything is called. Of several marks,
    the one that comes most often makes the step, unless it comes in bursts: the step is what a burst is part of.
    """
    marks = [one for one in candidates if one.kind in MARKS]
    others = [one for one in candidates if one.kind not in MARKS]
    best = max((one.cover_ns for one in marks), default=0.0)
    if max((one.cover_ns for one in others), default=0.0) >= MARKS_ONLY_RATIO * best:
        return others
    even = [one for one in marks if not any(_in_bursts(one, other) for other in marks)]
    return sorted(even or marks, key=lambda one: -len(one.index))


def _in_bursts(one: Candidate, other: Candidate) -> bool:
    """Whether most time between calls lies around those of ``other``, fewer ones. By medians: on a busy machine any
    pause may be long.
    """
    if other.worker is not one.worker or other.thread != one.thread or len(other.index) >= len(one.index):
        return False
    apart = np.diff(one.starts)
    at = np.unique(np.searchsorted(one.starts, other.starts)) - 1
    around = np.isin(np.arange(len(apart)), at)
    if int(around.sum()) < MIN_BURSTS or around.all():
        return False
    pause, usual = float(np.median(apart[around])), float(np.median(apart[~around]))
    return pause > BURST_FACTOR * usual and int(around.sum()) * pause > int((~around).sum()) * usual


def _best_cover(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep the calls that cover nearly as much of the time, from start to start, as the best."""
    best = max((one.cover_ns for one in candidates), default=0.0)
    return [one for one in candidates if one.cover_ns >= SAME_COVER_RATIO * best]


def _by_meaning(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Order by meaning: the call that says most about a step comes first. Drops none."""
    return branches.last(candidates)


def _workers(candidates: Sequence[Candidate]) -> list[Worker]:
    return list({id(one.worker): one.worker for one in candidates}.values())


def _of(worker: Worker, candidates: Sequence[Candidate]) -> list[Candidate]:
    return [one for one in candidates if one.worker is worker]


RULES: tuple[tuple[str, Rule], ...] = (
    ("queues", _no_queues),
    ("evaluations-of-fit", _no_evaluations),
    ("explicit-steps", _explicit),
    ("training-before-prediction", _training),
    ("not-around-training", _not_around),
    ("calls-before-pulls", _calls_before_pulls),
    ("calls-before-marks", _calls_before_marks),
    ("best-cover", _best_cover),
    ("order-of-meaning", _by_meaning),
)
ABSOLUTE = frozenset({"queues", "evaluations-of-fit"})
"""Rules that may drop everything."""
