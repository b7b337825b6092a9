"""Until done: keep the best sure gain, look again at what is left, and go on: pure logic, the caller runs the job.

Bottlenecks hide each other and effects do not add, so one change is kept at a time, and the next ones are suggested by
a run, and measured in rounds, in which it is in effect. Only gains are tried on the way. At its end the job as it was
and with everything that was kept are measured against each other; then, in the time that is left, the ceilings, and
the gains that change the results, on the job as it is then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.experiments import schedule
from stepscope.experiments.combine import merged
from stepscope.experiments.plan import Candidate, keeps_results
from stepscope.experiments.schedule import MIN_ROUNDS, Experiment, MeasuredRun, NotMeasuredError, TimeLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.experiments.schedule import Arm
    from stepscope.model.report.whatif import Stop

Kept = tuple[str, ...]
MAX_STEPS = 12
"""Most changes that are kept: more than there are gains in the catalogue that can be in effect together."""
MAX_IMPOSSIBLE = 2
"""Steps in which a trial was not possible, after which it is not tried again."""
ALL = "all"
"""The trial of everything that was kept, against the job as it was."""
FINAL, LEFT = "final", "left"
"""Stages after the steps, whose stages are "step1", "step2" ..."""
SHARE = 0.5
"""Share of the time that is left that one step may take, so that there is some for the next one."""
_LEAST_RUNS = MIN_ROUNDS * 3
"""Runs of three rounds of one trial."""


class TriedJob(Protocol):
    """The job, as the caller runs it."""

    def look(self, stage: str, kept: Kept) -> Sequence[Candidate]:
        """A run with captures with ``kept`` in effect; what it suggests, the best first."""

    def measure(self, stage: str, kept: Kept, trial: str, number: int) -> MeasuredRun:
        """A run of a round with ``kept`` in effect and ``trial`` added ("": nothing)."""


class Step(Struct, frozen=True, kw_only=True):
    """What was tried on the job with some changes kept."""

    stage: str
    kept: Kept
    """In effect in all its runs."""
    found: Experiment
    winner: Arm | None
    """The gain that is kept from then on; None: there was none."""


class Way(Struct, kw_only=True):
    """All steps, and what is left."""

    steps: list[Step] = field(default_factory=list)
    kept: Kept = ()
    """Everything that was kept."""
    final: Experiment | None = None
    """The job as it was against the job with ``kept``; None if nothing was kept, or the user ended it."""
    left: Experiment | None = None
    """Ceilings and gains that are not kept, on the job with ``kept``; None if the user ended it."""
    suggested: bool = False
    """Whether the first look suggested anything."""
    stop: Stop = "steps"

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return self.stop == "interrupted"


class Rules(Struct, frozen=True, kw_only=True):
    """When to stop, and what to keep."""

    seconds: float
    """Time for all runs."""
    rounds: int
    """Maximum number of rounds of a step."""
    changed: bool = False
    """Whether gains that change the results are kept."""


def climb(job: TriedJob, clock: Callable[[], float], rules: Rules) -> Way:
    """Keep gains until there is none, or the time is over.

    Raises:
        NotMeasuredError: the job as it was has no time.
        KeyboardInterrupt: the user ended it before a round was complete.
    """
    return _Climb(job, clock, rules).all()


class _Climb:
    def __init__(self, job: TriedJob, clock: Callable[[], float], rules: Rules) -> None:
        self._job, self._clock, self._rules = job, clock, rules
        self._way = Way()
        self._began = clock()
        self._runs = 0
        self._impossible: Counter[str] = Counter()
        """In how many steps a trial was not possible: what is kept may make it possible, but not twice."""
        self._candidates: Sequence[Candidate] = ()
        """What the last look suggested."""

    def all(self) -> Way:
        """The steps, the comparison at the end, and what is left."""
        way = self._way
        try:
            self._steps()
            if not way.interrupted:
                self._compare()
                self._rest()
        except KeyboardInterrupt:
            if not way.steps:
                raise
            way.stop = "interrupted"
        return way

    def _steps(self) -> None:
        way = self._way
        for number in range(1, MAX_STEPS + 1):
            stage = f"step{number}"
            self._candidates = self._look(stage)
            way.suggested = way.suggested or bool(self._candidates)
            gains = self._gains()
            if not gains:
                way.stop = "nothing-suggested"
                return
            if number > 1 and self._left_s() < _LEAST_RUNS * self._each():
                way.stop = "time"
                return
            if not self._step(stage, gains):
                return

    def _step(self, stage: str, gains: Sequence[Candidate]) -> bool:
        """One step; whether there is another."""
        way = self._way
        seconds = max(SHARE * self._left_s(), _LEAST_RUNS * self._each())
        limits = TimeLimits(seconds=seconds, rounds=self._rules.rounds, best_only=True)
        try:
            found = schedule.explore(gains, self._runner(stage, way.kept), self._clock, limits)
        except NotMeasuredError:
            if not way.steps:
                raise
            way.stop = "not-measured"
            return False
        winner = schedule.sure_gain(found)
        way.steps.append(Step(stage=stage, kept=way.kept, found=found, winner=winner))
        self._impossible.update(arm.candidate.trial for arm in found.arms if arm.why)
        if winner is not None:
            way.kept = merged(way.kept, winner.candidate.trial)
        if found.interrupted:
            way.stop = "interrupted"
        elif winner is None:
            way.stop = "no-gain"
        return winner is not None and not found.interrupted

    def _compare(self) -> None:
        """The job as it was against the job with everything: three rounds at least."""
        if not self._way.kept:
            return
        whole = Candidate(trial=ALL, kind="gain", expected_ratio=0.0, reason="")
        limits = TimeLimits(seconds=float("inf"), rounds=MIN_ROUNDS if self._left_s() <= 0 else self._rules.rounds)
        self._way.final = self._explored([whole], self._all_or_nothing, limits)

    def _all_or_nothing(self, trial: str, number: int) -> MeasuredRun:
        return self._measure(FINAL, self._way.kept if trial else (), "", number)

    def _rest(self) -> None:
        """Ceilings, and gains that are not kept, while there is time."""
        way = self._way
        if way.interrupted:
            return
        gains = self._gains()
        missed = gains if way.stop == "time" else []
        rest = [one for one in self._candidates if one not in gains and self._is_new(one)]
        seconds = self._left_s(reserve=False)
        if not rest or seconds < 3 * self._each():
            way.left = Experiment(arms=[], not_tried=[*missed, *rest])
            return
        limits = TimeLimits(seconds=seconds, rounds=self._rules.rounds)
        way.left = self._explored(rest, self._runner(LEFT, way.kept), limits)
        way.left.not_tried[:0] = missed

    def _explored(
        self, candidates: Sequence[Candidate], run: Callable[[str, int], MeasuredRun], limits: TimeLimits
    ) -> Experiment:
        """What rounds say; all candidates are left out if the job cannot be measured any more."""
        try:
            found = schedule.explore(candidates, run, self._clock, limits)
        except NotMeasuredError:
            self._way.stop = "not-measured"
            return Experiment(arms=[], not_tried=list(candidates))
        if found.interrupted:
            self._way.stop = "interrupted"
        return found

    # -- candidates --------------------------------------------------------------------------------------------------

    def _look(self, stage: str) -> Sequence[Candidate]:
        found = [_further(one, self._way.kept) for one in self._job.look(stage, self._way.kept)]
        self._runs += 1
        return [one for one in found if self._impossible[one.trial] < MAX_IMPOSSIBLE]

    def _gains(self) -> list[Candidate]:
        """The suggested gains that may be kept."""
        return [
            one
            for one in self._candidates
            if one.kind == "gain" and self._is_new(one) and (self._rules.changed or keeps_results(one.trial))
        ]

    def _is_new(self, candidate: Candidate) -> bool:
        return candidate.trial not in self._way.kept

    # -- runs and time -----------------------------------------------------------------------------------------------

    def _runner(self, stage: str, kept: Kept) -> Callable[[str, int], MeasuredRun]:
        return lambda trial, number: self._measure(stage, kept, trial, number)

    def _measure(self, stage: str, kept: Kept, trial: str, number: int) -> MeasuredRun:
        self._runs += 1
        return self._job.measure(stage, kept, trial, number)

    def _each(self) -> float:
        """Seconds of a run, so far."""
        return (self._clock() - self._began) / self._runs if self._runs else 0.0

    def _left_s(self, *, reserve: bool = True) -> float:
        """Time that is left, without that of the comparison at the end."""
        kept_s = _LEAST_RUNS * self._each() if reserve else 0.0
        return self._rules.seconds - (self._clock() - self._began) - kept_s


def _further(candidate: Candidate, kept: Kept) -> Candidate:
    """The candidate, or, if it multiplies the batch that a kept one has multiplied already, both factors."""
    if not candidate.trial.startswith(_BATCH):
        return candidate
    before = next((one for one in kept if one.startswith(_BATCH)), "")
    if not before:
        return candidate
    factor = int(candidate.trial.removeprefix(_BATCH)) * int(before.removeprefix(_BATCH))
    return replace(candidate, trial=f"{_BATCH}{factor}")


_BATCH = "batch:"
