"""When an edit is kept: pure logic on the times of rounds and on what runs logged; the caller runs the program.

Two sets of rounds, so that chance that chose an edit cannot prove it. The first set only says whether an edit looks
like a gain. The second is made afresh: its lower bound must be ``LEAST`` at the 99 % level, of which each look at the
rounds so far takes its share. Every other round runs the patched program first, so that what drifts hits both sides.
"""

from __future__ import annotations

from contextlib import suppress
from statistics import geometric_mean
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.experiments import statistics
from stepscope.model.report.fix import ProvenRounds
from stepscope.use_cases.fix import said as logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stepscope.model.report.fix import EditClass, EditOutcome, Sameness
    from stepscope.model.report.whatif import Measure
    from stepscope.use_cases.fix.said import Said

LEAST = 0.03
"""Least gain of an edit that is kept, as a share of the time: the least severity of a finding."""
CHOOSING = 2
"""Rounds that choose."""
LOOKS = (4, 8)
"""Numbers of fresh rounds after which it is looked whether the gain is sure."""
PROMISING = 0.01
"""Gain by the fresh rounds below which no further ones are made."""
SLOWER_WHOLE = 1.03
"""Time of whole runs with an edit over that without, above which faster steps are no gain."""
AS_MANY = 1.02
"""Steps of a run over those of another with which both make as many: the last ones of a run may not be counted."""
MEASURES: tuple[Measure, ...] = ("sample", "step")


class Timed(Struct, frozen=True, kw_only=True):
    """One run of the program to its own end."""

    ns: Mapping[Measure, float]
    """Steady time per sample and step where known, and of the whole run."""
    steps: str = ""
    """The calls that are its steps, in words."""
    count: int = 0
    """How many steps it made; 0: unknown."""
    said: Said


class Round(Struct, frozen=True):
    """A run of each side."""

    before: Timed
    after: Timed


class RunFailedError(Exception):
    """The patched program failed; the message says how."""


class TimeOverError(Exception):
    """There is no time for another run."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What the rounds say of an edit."""

    outcome: EditOutcome
    why: str = ""
    same: Sameness = ""
    measure: Measure = "run"
    choosing: ProvenRounds = ProvenRounds()
    fresh: ProvenRounds = ProvenRounds()


def prove(
    before: Callable[[], Timed],
    after: Callable[[], Timed],
    unchanged: Sequence[Said],
    kind: EditClass,
    allowed: frozenset[str] = frozenset(),
) -> Verdict:
    """Run both sides until an edit is kept or not.

    Args:
        before: runs the program as it was before the edit.
        after: runs it with the edit; raises ``RunFailedError``, and ``TimeOverError`` as ``before`` does.
        unchanged: what runs of the unchanged program logged. It may be read after each round: runs add to it.
        kind: the weakest class of all edits of ``after``.
        allowed: the words of ``--allow``.
    """
    choosing: list[Round] = []
    fresh: list[Round] = []
    try:
        _rounds(choosing, CHOOSING, before, after)
        refused = _refused(choosing, unchanged, kind, allowed) or _no_gain(choosing)
        if refused is not None:
            return _with(refused, choosing, ())
        for many in LOOKS:
            _rounds(fresh, many, before, after)
            refused = _refused([*choosing, *fresh], unchanged, kind, allowed)
            if refused is not None:
                return _with(refused, choosing, fresh)
            found = measured(fresh, measure_of([*choosing, *fresh]))
            if is_sure(found) or found.ratio > 1.0 - PROMISING:
                break
    except RunFailedError as error:
        return _with(Verdict(outcome="failed", why=str(error)), choosing, fresh)
    except TimeOverError:
        if not fresh or not is_sure(measured(fresh, measure_of([*choosing, *fresh]))):
            return _with(Verdict(outcome="no-time", why="the time was over before it was proved"), choosing, fresh)
    return _decided(choosing, fresh, unchanged, kind, allowed)


def _rounds(made: list[Round], many: int, before: Callable[[], Timed], after: Callable[[], Timed]) -> None:
    while len(made) < many:
        if len(made) % 2:
            other = after()
            made.append(Round(before(), other))
        else:
            one = before()
            made.append(Round(one, after()))


def total(before: Callable[[], Timed], after: Callable[[], Timed]) -> list[Round]:
    """Rounds of two programs, none of which is chosen by them: as many as there is time for, up to the first look."""
    made: list[Round] = []
    with suppress(RunFailedError, TimeOverError):
        _rounds(made, LOOKS[0], before, after)
    return made


def measure_of(rounds: Sequence[Round]) -> Measure:
    """What is compared: steps where both sides make the same calls and as many of them, else whole runs."""
    runs = [one for pair in rounds for one in (pair.before, pair.after)]
    counts = [one.count for one in runs]
    alike = len({one.steps for one in runs}) == 1 and max(counts) <= AS_MANY * min(counts)
    if alike and runs[0].steps and min(counts):
        for measure in MEASURES:
            if all(one.ns.get(measure) for one in runs):
                return measure
    return "run"


def measured(rounds: Sequence[Round], measure: Measure) -> ProvenRounds:
    """The ratio of rounds, with its interval from three rounds on."""
    if not rounds:
        return ProvenRounds()
    pairs = tuple((one.before.ns[measure], one.after.ns[measure]) for one in rounds)
    walls = [one.after.ns["run"] / one.before.ns["run"] for one in rounds]
    ratio = geometric_mean([after / before for before, after in pairs])
    if len(pairs) < statistics.MIN_PAIRS:
        return ProvenRounds(pairs=pairs, ratio=ratio, wall_ratio=geometric_mean(walls))
    effect = statistics.paired([one for one, _ in pairs], [other for _, other in pairs], looks=len(LOOKS))
    return ProvenRounds(pairs=pairs, ratio=ratio, low=effect.low, high=effect.high, wall_ratio=geometric_mean(walls))


def is_sure(found: ProvenRounds) -> bool:
    """Whether the lower bound of the gain is large enough, and whole runs do not lose what steps gain."""
    enough = len(found.pairs) >= LOOKS[0]
    return enough and 0.0 < found.high <= 1.0 - LEAST and found.wall_ratio <= SLOWER_WHOLE


def _refused(
    rounds: Sequence[Round], unchanged: Sequence[Said], kind: EditClass, allowed: frozenset[str]
) -> Verdict | None:
    """Why the rounds so far exclude the edit, whatever it gains; None if they do not."""
    found = logs.judge(unchanged, [one.after.said for one in rounds], kind, allowed)
    if not found.same:
        outcome: EditOutcome = "other-results" if found.repeatable else "not-repeatable"
        return Verdict(outcome=outcome, why=found.why)
    return None


def _no_gain(choosing: Sequence[Round]) -> Verdict | None:
    measure = measure_of(choosing)
    found = measured(choosing, measure)
    if found.ratio <= 1.0 - LEAST and found.wall_ratio <= SLOWER_WHOLE:
        return None
    why = f"{found.ratio:.2f} times the time in the rounds that choose"
    if found.ratio <= 1.0 - LEAST:
        why = f"steps are faster, and the whole run takes {found.wall_ratio:.2f} times the time"
    return _with(Verdict(outcome="no-gain", why=why), choosing, ())


def _decided(
    choosing: Sequence[Round],
    fresh: Sequence[Round],
    unchanged: Sequence[Said],
    kind: EditClass,
    allowed: frozenset[str],
) -> Verdict:
    every = [*choosing, *fresh]
    found = measured(fresh, measure_of(every))
    if is_sure(found):
        same = logs.judge(unchanged, [one.after.said for one in every], kind, allowed).same
        return _with(Verdict(outcome="kept", same=same), choosing, fresh)
    why = f"{found.ratio:.2f} times the time in fresh rounds, up to {found.high:.2f}: a gain of {LEAST:.0%} is not sure"
    if 0.0 < found.high <= 1.0 - LEAST:
        why = f"steps are faster, and the whole run takes {found.wall_ratio:.2f} times the time"
    return _with(Verdict(outcome="not-sure", why=why), choosing, fresh)


def _with(verdict: Verdict, choosing: Sequence[Round], fresh: Sequence[Round]) -> Verdict:
    """The verdict with the times of its rounds."""
    every = [*choosing, *fresh]
    measure = measure_of(every) if every else "run"
    return Verdict(
        outcome=verdict.outcome,
        why=verdict.why,
        same=verdict.same,
        measure=measure,
        choosing=measured(choosing, measure),
        fresh=measured(fresh, measure),
    )
