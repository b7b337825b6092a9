"""In which order trials run, and when enough is known: pure logic, the caller runs the job.

A round runs the unchanged job, each trial, and the unchanged job again; every other round in the opposite order, so
that what drifts (the host's clock, a neighbour) hits all alike. The two unchanged runs of a round are compared with
each other as well: what differs there is noise. The first round tries the candidates, the best first, while there is
time; the later ones repeat the most promising, as many as three rounds of can be afforded. A trial ends early if
its answer is clear. A trial that fails later than in the first round keeps its rounds and is repeated once more.

A trial that can be switched while the job runs is switched on and off in one process first (``experiments.blocks``):
one run gives pairs, without unchanged runs around it. If that says nothing, it is run whole in the same round.
"""

from __future__ import annotations

from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.experiments import statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.experiments.plan import Candidate
    from stepscope.experiments.statistics import Effect, Verdict

MIN_ROUNDS = 3
"""Two runs a side give a useless interval."""
LATER_RUNS = 8
"""Runs for which the first round leaves time: two more rounds of two trials."""
SAME = 0.03
"""Change that makes no difference: the least severity of a finding. A trial whose first round shows less is not
repeated while others are more promising."""
CLOSE = 1.25
"""Time over that of the best trial beyond which one round excludes that a trial is better than it: equal runs differ by
up to 15 % (docs/decisions/0047-experiments.md)."""
MAX_FAILURES = 2
"""Failures after which a trial is not repeated."""
UNCHANGED = ""
"""The trial that changes nothing."""


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """One run."""

    ns: float
    """Time per sample or step; 0: it could not be measured."""
    why: str = ""
    """Why not."""
    wall_s: float = 0.0
    """What the run took."""
    pairs: tuple[tuple[float, float], ...] = ()
    """(off, on) of blocks, if the trial was switched in the run, ns."""
    unchanged: tuple[tuple[float, float], ...] = ()
    """The same of blocks that are both off."""


class Arm(Struct, kw_only=True):
    """One candidate and its runs. A run may be missing: the pair then is left out."""

    candidate: Candidate
    pairs: list[tuple[float, float]] = field(default_factory=list)
    """(unchanged, with it) of each round, ns."""
    failures: list[tuple[int, str]] = field(default_factory=list)
    """(round, why) of the runs that could not be measured."""
    switched: bool = False
    """Whether ``pairs`` are of blocks of a process, in which the trial was switched on and off."""
    unchanged: list[tuple[float, float]] = field(default_factory=list)
    """Two blocks that are off, of the same processes, ns."""
    whole_why: str = ""
    """Why it was run whole although it can be switched; "" if it was not."""

    @property
    def why(self) -> str:
        """Why it is not possible; "" if it was measured once, or not yet run."""
        return self.failures[0][1] if self.failures and not self.pairs else ""

    @property
    def ended(self) -> bool:
        """Whether it has failed too often to be repeated."""
        return bool(self.why) or len(self.failures) >= MAX_FAILURES

    @property
    def ratio(self) -> float:
        """Time with it over time without, so far: the geometric mean over the rounds; 1 if unknown."""
        return geometric_mean([after / before for before, after in self.pairs]) if self.pairs else 1.0


class Experiment(Struct, kw_only=True):
    """All that was tried."""

    arms: list[Arm]
    unchanged: list[tuple[float, float]] = field(default_factory=list)
    """The two unchanged runs of each round, ns."""
    not_tried: list[Candidate] = field(default_factory=list)
    """Candidates for which there was no time."""
    rounds: int = 0
    looks: int = 1
    """How often it was looked whether the answer is clear."""
    switched_looks: int = 1
    """The same for trials that are switched: their first round may be clear."""
    interrupted: bool = False
    """Whether the user ended it: the round that ran is not in it."""

    def effect(self, arm: Arm) -> Effect | None:
        """Effect of a trial so far; None with fewer than three rounds, or pairs of blocks."""
        return self._effect(arm.pairs, self.switched_looks if arm.switched else self.looks, switched=arm.switched)

    def against_itself(self) -> Effect | None:
        """The unchanged job against itself; None with fewer than three rounds."""
        return self._effect(self.unchanged, 1, switched=False)

    def off_against_off(self, arm: Arm) -> Effect | None:
        """Blocks of a trial that are off against others that are; None with fewer than three pairs."""
        return self._effect(arm.unchanged, 1, switched=True)

    def _effect(self, pairs: Sequence[tuple[float, float]], looks: int, *, switched: bool) -> Effect | None:
        """Noise of whole runs and that of blocks are two things, and pooled apart: runs differ by more than blocks."""
        if len(pairs) < MIN_ROUNDS:
            return None
        found = [arm.pairs for arm in self.arms if arm.switched == switched]
        found += [arm.unchanged for arm in self.arms] if switched else [self.unchanged]
        noise = statistics.noise(_sides(one) for one in found if one)
        before, after = _sides(pairs)
        return statistics.paired(before, after, looks=looks, among=noise)


class TimeLimits(Struct, frozen=True, kw_only=True):
    """How long to go on."""

    seconds: float
    """Time for all runs; infinite if only rounds count."""
    rounds: int
    """Maximum number of rounds."""
    best_only: bool = False
    """Whether only the best gain is asked for: it ends when that one is sure, and repeats none that cannot be it."""


def _sides(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [before for before, _ in pairs], [after for _, after in pairs]


def _around(arms: Sequence[Arm]) -> int:
    """Unchanged runs of a round: none if all its trials are switched."""
    return 0 if arms and all(arm.switched for arm in arms) else 2


class NotMeasuredError(Exception):
    """The unchanged job cannot be measured, so nothing can be compared."""


def answer(effect: Effect) -> Verdict:
    """What an effect says: no difference, faster, slower, or nothing yet."""
    same = statistics.verdict(effect, over=SAME) == "same"
    return "same" if same else statistics.verdict(effect)


def sure_gain(experiment: Experiment) -> Arm | None:
    """The best trial that is surely faster, by more than ``SAME``; None if there is none."""
    sure = [arm for arm in experiment.arms if arm.candidate.kind == "gain" and arm.ratio < 1 - SAME]
    faster = [arm for arm in sure if (effect := experiment.effect(arm)) is not None and answer(effect) == "faster"]
    return min(faster, key=lambda arm: arm.ratio, default=None)


def explore(
    candidates: Sequence[Candidate],
    run: Callable[[str, int], MeasuredRun],
    clock: Callable[[], float],
    limits: TimeLimits,
    switch: Callable[[str, int], MeasuredRun | None] | None = None,
) -> Experiment:
    """Run candidates until all answers are clear, or time or rounds are over.

    Args:
        candidates: what to try, the best first.
        run: runs the job with a trial ("": unchanged) in a round, and measures it.
        clock: seconds, rising.
        limits: when to stop.
        switch: runs the job once with a trial switched on and off in it; None if that trial cannot be.

    Raises:
        NotMeasuredError: the unchanged job has no time.
        KeyboardInterrupt: the user ended it before a round was complete.
    """
    return _Exploration(candidates, run, clock, limits, switch).all()


class _Exploration:
    def __init__(
        self,
        candidates: Sequence[Candidate],
        run: Callable[[str, int], MeasuredRun],
        clock: Callable[[], float],
        limits: TimeLimits,
        switch: Callable[[str, int], MeasuredRun | None] | None,
    ) -> None:
        self._run, self._clock, self._limits, self._switch = run, clock, limits, switch
        self._began = clock()
        self._made = 0
        self._candidates = list(candidates)
        self._experiment = Experiment(
            arms=[], looks=max(1, limits.rounds - MIN_ROUNDS + 1), switched_looks=limits.rounds
        )

    def all(self) -> Experiment:
        """The first round, and all others."""
        experiment = self._experiment
        try:
            self._first()
            while experiment.rounds < self._limits.rounds and (arms := self._open()):
                if not self._affordable(len(arms) + _around(arms)):
                    break
                self._round(arms)
        except KeyboardInterrupt:
            if not experiment.rounds:
                raise
            experiment.interrupted = True
        return experiment

    # -- rounds --------------------------------------------------------------------------------------------------

    def _first(self) -> None:
        """Each candidate once, while there is time."""
        before = self._unchanged()
        runs: list[tuple[Arm, float]] = []
        for candidate in self._candidates:
            if runs and not self._affordable(2 + self._later_runs()):
                self._experiment.not_tried.append(candidate)
                continue
            arm = Arm(candidate=candidate)
            runs.append((arm, self._measured(arm)))
        self._keep(before, runs, self._unchanged() if _around([arm for arm, _ in runs]) else 0.0)

    def _later_runs(self) -> int:
        """Runs for which the first round leaves time; none if there is no time for three rounds anyway."""
        runs = self._limits.seconds / self._each() if self._each() else float("inf")
        return LATER_RUNS if self._limits.best_only or runs >= MIN_ROUNDS * 3 + 1 else 0

    def _round(self, arms: Sequence[Arm]) -> None:
        order = arms if self._experiment.rounds % 2 == 0 else arms[::-1]
        around = bool(_around(arms))
        before = self._unchanged() if around else 0.0
        runs = [(arm, self._measured(arm)) for arm in order]
        self._keep(before, runs, self._unchanged() if around else 0.0)

    def _keep(self, before: float, runs: Sequence[tuple[Arm, float]], after: float) -> None:
        for arm, ns in runs:
            if ns:
                arm.pairs.append((fmean((before, after)), ns))
            if arm not in self._experiment.arms:
                self._experiment.arms.append(arm)
        if before and after:
            self._experiment.unchanged.append((before, after))
        self._experiment.rounds += 1

    def _unchanged(self) -> float:
        measured = self._one(UNCHANGED)
        if not measured.ns:
            raise NotMeasuredError(measured.why)
        return measured.ns

    def _measured(self, arm: Arm) -> float:
        """The time of a whole run; 0 if there is none, or the trial was switched."""
        if self._switched(arm):
            return 0.0
        measured = self._one(arm.candidate.trial)
        if not measured.ns:
            arm.failures.append((self._experiment.rounds + 1, measured.why))
        return measured.ns

    def _one(self, trial: str) -> MeasuredRun:
        measured = self._run(trial, self._experiment.rounds + 1)
        self._made += 1
        return measured

    def _switched(self, arm: Arm) -> bool:
        """Run a trial switched on and off, if that can be; whether its pairs are of blocks."""
        if self._switch is None or arm.whole_why or (arm.pairs and not arm.switched):
            return False
        measured = self._switch(arm.candidate.trial, self._experiment.rounds + 1)
        if measured is None:
            return False
        self._made += 1
        if measured.pairs:
            arm.switched = True
            arm.pairs += measured.pairs
            arm.unchanged += measured.unchanged
        elif arm.switched:
            arm.failures.append((self._experiment.rounds + 1, measured.why))
        else:
            arm.whole_why = measured.why
        return arm.switched

    # -- what to repeat -------------------------------------------------------------------------------------------

    def _open(self) -> list[Arm]:
        """The trials that the next round repeats, the most promising first."""
        alive = [arm for arm in self._experiment.arms if not arm.ended]
        arms = [arm for arm in alive if not self._clear(arm)]
        if self._limits.best_only:
            arms = self._possibly_best(alive, arms)
        arms.sort(key=lambda arm: arm.ratio)
        promising = [arm for arm in arms if arm.ratio < 1 - SAME]
        return self._fitting(promising or arms)

    def _possibly_best(self, alive: Sequence[Arm], arms: Sequence[Arm]) -> list[Arm]:
        """Those of ``arms`` that may be the best; none if the best is clear, or no gain seen in three rounds."""
        best = min(alive, key=lambda arm: arm.ratio, default=None)
        seen = self._experiment.rounds >= MIN_ROUNDS
        if best is None or best not in arms or (seen and best.ratio >= 1 - SAME):
            return []
        return [arm for arm in arms if arm.ratio <= CLOSE * best.ratio]

    def _fitting(self, arms: list[Arm]) -> list[Arm]:
        """As many trials as there is time to finish; at least one."""
        missing = max(1, MIN_ROUNDS - self._experiment.rounds) if _around(arms) else 1
        left = self._limits.seconds - self._spent()
        runs = left / (missing * self._each()) if self._each() else float("inf")
        count = len(arms) if runs == float("inf") else max(1, int(runs) - _around(arms))
        return arms[:count]

    def _clear(self, arm: Arm) -> bool:
        effect = self._experiment.effect(arm)
        return effect is not None and answer(effect) != "undecided"

    def _spent(self) -> float:
        return self._clock() - self._began

    def _each(self) -> float:
        """Seconds of a run, so far."""
        return self._spent() / self._made if self._made else 0.0

    def _affordable(self, runs: int) -> bool:
        return self._spent() + runs * self._each() <= self._limits.seconds
