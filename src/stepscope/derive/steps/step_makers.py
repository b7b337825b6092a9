"""Makers of steps: the calls at one place that train, evaluate or predict, over all threads of a process.

Calls at one place that predict or evaluate are one maker, however many threads make them: requests are alike. Each
thread that trains is its own maker, and so is each process that makes the steps of another one as well, unless they are
tasks of a cluster, which share a step. Parts of another maker's step are not makers: the compiled function of a
``predict``, the ``fit`` that contains the steps, evaluations and predictions of a fit's callbacks, functions called in
a step.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import call_sizes, choice, evaluations, step_finder
from stepscope.derive.steps.candidate import ENQUEUE
from stepscope.derive.steps.step_candidates import MIN_CALLS
from stepscope.model.log.events import Name
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.steps.candidate import Candidate
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.report.step_summary import MakerKind

KINDS = frozenset(kinds_with(Trait.MAKER))
MARKS = frozenset(kinds_with(Trait.MARK))
UPDATES = frozenset(kinds_with(Trait.UPDATE))
AS_OFTEN_RATIO = 0.9
"""Calls of the one for each of the other above which a step contains both: the run may begin or end between them."""


class Maker(Struct, frozen=True, kw_only=True):
    """One maker: the steps of each of its threads."""

    purpose: MakerKind
    threads: tuple[Steps, ...]
    name: Name
    """Name of most of its calls."""
    main: bool = False

    @property
    def steps(self) -> Steps:
        """Steps of its busiest thread."""
        return self.threads[0]

    @property
    def count(self) -> int:
        """Number of steps of all threads."""
        return sum(steps.count for steps in self.threads)

    @property
    def rate(self) -> float | None:
        """Steps per second of all threads, while any of them was at work."""
        return self._rate([steps.steady_count for steps in self.threads])

    @property
    def samples_per_s(self) -> float | None:
        """Samples per second of all threads; None if the samples of a step, or of some steps, are unknown."""
        held = [int(steps.samples[steps.steady].sum()) for steps in self.threads]
        known = all(held) and all(call_sizes.certain(steps.candidate) for steps in self.threads)
        return self._rate(held) if known else None

    def _rate(self, amounts: Sequence[int]) -> float | None:
        """Amounts per second, summed over the steady steps of each thread; threads that alternate do not add up."""
        known = [(amount, one) for amount, one in zip(amounts, self.threads, strict=True) if one.steady_ns > 0]
        if not known:
            return None
        if len(known) == 1:
            return known[0][0] * 1e9 / known[0][1].steady_ns
        spans = [(int(one.starts[0]), int(one.ends[-1])) for _, one in known]
        starts, ends = (np.array(side, np.int64) for side in zip(*sorted(spans), strict=True))
        whole = intervals.total(intervals.merge(starts, ends))
        rates = [
            amount / one.steady_ns * (end - start) for (amount, one), (start, end) in zip(known, spans, strict=True)
        ]
        return sum(rates) * 1e9 / max(1, whole)


def build(steps: Steps) -> tuple[Maker, ...]:
    """All makers, the main ones first, the others by number of steps."""
    main = steps.candidate
    equal = _equal(steps)
    chosen = (
        [main, *equal]
        if main.kind == Kind.STEP
        else [one for one in steps.candidates if one is main or _among(one, equal) or _makes(one, steps)]
    )
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for one in chosen:
        trains = one.purpose in {"training", "step"}
        key = (one.worker.info.key, one.kind, one.place, one.thread if trains else 0)
        groups.setdefault(key, []).append(one)
    makers = [_maker(group, steps) for group in groups.values()]
    order = {id(maker): (not maker.main, maker.steps is not steps, -maker.count) for maker in makers}
    return tuple(sorted(makers, key=lambda maker: order[id(maker)]))


def _maker(group: Sequence[Candidate], steps: Steps) -> Maker:
    main = steps.candidate
    first = next((one for one in group if one is main), max(group, key=lambda one: len(one.index)))
    threads = [first, *(one for one in group if one is not first)]
    ours = _alike(first, main) and (main.worker is first.worker or _among(first, _equal(steps)))
    purpose = first.purpose
    if purpose == "step" and not ours:
        purpose = "call"
    elif purpose == "call" and ours:
        apart = any(_updates_apart(one, steps) for one in _updates_of(main, steps.candidates))
        purpose = "training" if _updated(first) and not apart else "step"
    elif purpose == "call" and not ours and first.place[:3] == main.place[:3]:
        purpose = "evaluation"
    return Maker(
        purpose=purpose,
        threads=tuple(steps if one is main else evaluations.counted(step_finder.build(one)) for one in threads),
        name=_usual_name(threads),
        main=ours,
    )


def _alike(one: Candidate, other: Candidate) -> bool:
    """Whether calls are of one kind and meaning, whatever process makes them."""
    return (one.kind, one.place) == (other.kind, other.place)


def _equal(steps: Steps) -> list[Candidate]:
    """What makes the same steps in other processes: each by its own rules, so that parts of a step are none."""
    main = steps.candidate
    others: dict[str, list[Candidate]] = {}
    for one in steps.candidates:
        if one.worker is not main.worker and one.worker.info.member is None:
            others.setdefault(one.worker.info.key, []).append(one)
    if main.worker.info.member is not None:
        return []
    return [one for each in others.values() for one in choice.choose(each).candidates[:1] if _alike(one, main)]


def _among(one: Candidate, others: Sequence[Candidate]) -> bool:
    return any(one is other for other in others)


def _updated(one: Candidate) -> bool:
    """Whether the thread of these calls trains op by op: they are the forward passes of a training."""
    records = one.worker.records
    updates = np.isin(records.kind, list(UPDATES))
    return bool((updates & (records.thread == one.thread)).any())


def _makes(one: Candidate, steps: Steps) -> bool:
    """Whether a candidate makes steps: calls like the main one's do, and those that are no part of another's step."""
    main = steps.candidate
    if one.worker is main.worker and (one.kind, one.place) == (main.kind, main.place):
        return True
    if one.kind in UPDATES:
        return _updates_apart(one, steps)
    if one.kind not in KINDS or one.kind in MARKS or one.name.role == ENQUEUE:
        return False
    if one.purpose == "step" and (one.worker is not main.worker or one.thread != main.thread):
        return False
    if one.purpose in {"call", "step"} and not _in_rows(one, main):
        return False
    part = _in_predictions(one, steps.candidates) or any(_is_part(one, other, steps) for other in steps.candidates)
    return not part and not _in_fits(one)


def _in_predictions(one: Candidate, candidates: Iterable[Candidate]) -> bool:
    """Whether these are executions that mostly lie in Keras' predictions, at whatever lines these are called."""
    if one.kind != Kind.EXECUTION or one.purpose != "prediction":
        return False
    alike = [
        other
        for other in candidates
        if other.kind == Kind.LOOP and other.purpose == one.purpose and other.worker is one.worker
    ]
    spans = [(other.starts, other.ends) for other in alike if other.thread == one.thread]
    if not spans:
        return False
    starts, ends = (np.concatenate(side) for side in zip(*spans, strict=True))
    order = np.argsort(starts, kind="stable")
    held = intervals.overlapping(intervals.merge(starts[order], ends[order]), one.starts, one.starts)
    return 2 * int(held.sum()) > len(one.index)


def _updates_apart(one: Candidate, steps: Steps) -> bool:
    """Whether updates on the steps' thread are a training of their own: they come more, or less, often than steps."""
    main = steps.candidate
    if one.worker is not main.worker or one.thread != main.thread or _as_often(one, main):
        return False
    ranks = [other.rank for other in _updates_of(main, steps.candidates)]
    return one.kind == main.kind or one.rank == min(ranks)


def _updates_of(main: Candidate, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The updates on the thread of these calls."""
    return [
        one for one in candidates if one.kind in UPDATES and one.worker is main.worker and one.thread == main.thread
    ]


def _as_often(one: Candidate, main: Candidate) -> bool:
    """Whether two calls come about as often: then they are parts of the same step."""
    fewer, more = sorted((len(one.index), len(main.index)))
    return more - fewer <= max(1.0, (1.0 - AS_OFTEN_RATIO) * more)


def _in_rows(one: Candidate, main: Candidate) -> bool:
    """Whether a function is called in a loop between steps, many times in a row: then it is no part of a step."""
    gaps = np.searchsorted(main.starts, one.starts)
    return len(one.index) >= MIN_CALLS * len(np.unique(gaps))


def _is_part(one: Candidate, other: Candidate, steps: Steps) -> bool:
    """Whether ``one`` is part of ``other``, or is the call that contains its steps."""
    if other is one or other.worker is not one.worker or other.thread != one.thread:
        return False
    if other.kind not in KINDS or one is steps.candidate:
        return False
    if one.kind == Kind.LOOP and (one.purpose == "training" or other is steps.candidate):
        return other.kind == Kind.EXECUTION and other.purpose == one.purpose and _inside(other, one)
    trains = one.kind == Kind.EXECUTION and one.purpose == "training"
    return not (trains and other.kind == Kind.LOOP) and _inside(one, other)


def _inside(one: Candidate, other: Candidate) -> bool:
    """Whether most calls of ``one`` lie in calls of ``other``."""
    spans = intervals.merge(other.starts, other.ends)
    if len(spans[0]) == 0:  # moments, such as calls of JAX
        return False
    at = np.searchsorted(spans[0], one.starts, side="right") - 1
    inside = (at >= 0) & (one.starts < spans[1][np.maximum(at, 0)])
    same = len(one.index) == len(other.index) and bool((one.starts == other.starts).all())
    return 2 * int(inside.sum()) > len(one.index) and not same


def _in_fits(one: Candidate) -> bool:
    """Whether most calls lie in Keras' fit without being its steps: a validation, or predictions of a callback."""
    if one.kind == Kind.EXECUTION and one.purpose == "training":
        return False
    records = one.worker.records
    fits = [name.id for name in one.worker.all(Name) if name.role == "fit"]
    mine = (records.kind == Kind.LOOP) & np.isin(records.name, fits) & (records.thread == one.thread)
    if one.kind == Kind.LOOP and one.purpose == "training":
        return False
    starts = records.start_ns[mine]
    spans = intervals.merge(starts, starts + records.dur_ns[mine])
    at = np.searchsorted(spans[0], one.starts, side="right") - 1
    inside = (at >= 0) & (one.starts < spans[1][np.maximum(at, 0)]) if len(spans[0]) else np.zeros(len(one.index), bool)
    return 2 * int(inside.sum()) > len(one.index)


def _usual_name(candidates: Sequence[Candidate]) -> Name:
    """The name of most of the calls; for Keras' compiled functions, that of the calls that contain them."""
    one = candidates[0]
    records, names = one.worker.records, {name.id: name for name in one.worker.all(Name)}
    used: Counter[int] = Counter()
    for candidate in candidates:
        index = candidate.index
        if candidate.kind == Kind.EXECUTION:
            loops = np.flatnonzero((records.kind == Kind.LOOP) & (records.thread == candidate.thread))
            at = np.searchsorted(records.start_ns[loops], candidate.starts, side="right") - 1
            index = loops[at[at >= 0]]
        used.update(records.name[index].tolist())
    return names.get(used.most_common(1)[0][0], one.name) if used else one.name
