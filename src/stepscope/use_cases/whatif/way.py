"""``--until-done``: the job as ``experiments.climb`` wants it, and the report of all steps."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from stepscope.experiments import climb
from stepscope.experiments.plan import keeps_results
from stepscope.model.report.whatif import WhatIfResult, WhatIfStep, WhatIfWay
from stepscope.use_cases.whatif import result
from stepscope.use_cases.whatif.result import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.experiments.climb import Kept, Step, Way
    from stepscope.experiments.plan import Candidate
    from stepscope.experiments.schedule import Experiment, MeasuredRun
    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.use_cases.whatif.recorded import RecordedRuns
    from stepscope.use_cases.whatif.runs import TrialRun


class RecordedJob:
    """The job, for ``climb``."""

    def __init__(self, recorded: RecordedRuns, candidates: Callable[[str, Kept], Sequence[Candidate]]) -> None:
        """``candidates``: what a look at the job with some changes kept suggests."""
        self._recorded = recorded
        self._candidates = candidates

    def look(self, stage: str, kept: Kept) -> Sequence[Candidate]:
        """What is to be tried with ``kept`` in effect."""
        return self._candidates(stage, kept)

    def measure(self, stage: str, kept: Kept, trial: str, number: int) -> MeasuredRun:
        """A run of a round."""
        return self._recorded.measured(trial, number, stage=stage, kept=kept)


def report(recorded: RecordedRuns, way: Way, *, changed: bool) -> WhatIfReport:
    """The report of an experiment that went on until it was done."""
    stages = [Stage(found=step.found, name=step.stage, kept=step.kept) for step in way.steps if not step.kept]
    if way.left is not None and not way.kept:
        stages.append(_left(way, way.left))
    return result.build(recorded, stages, way=_way(recorded, way, changed=changed), interrupted=way.interrupted)


def _way(recorded: RecordedRuns, way: Way, *, changed: bool) -> WhatIfWay:
    return WhatIfWay(
        steps=tuple(_step(recorded, step) for step in way.steps),
        kept=way.kept,
        lasting=tuple(result.lasting(one, recorded.runs, way.kept[:at]) for at, one in enumerate(way.kept)),
        total=_total(recorded, way, way.final) if way.final is not None and way.final.arms else None,
        left=tuple(result.results_of(_left(way, way.left), recorded.runs)) if way.left is not None else (),
        left_rounds=way.left.rounds if way.left is not None else 0,
        changed_results=changed,
        stop=way.stop,
    )


def _left(way: Way, found: Experiment) -> Stage:
    return Stage(found=found, name=climb.LEFT, kept=way.kept)


def _step(recorded: RecordedRuns, step: Step) -> WhatIfStep:
    stage = Stage(found=step.found, name=step.stage, kept=step.kept)
    plain = [ran for ran in recorded.runs if ran.stage == step.stage and not ran.trial]
    return WhatIfStep(
        kept=step.kept,
        ns=_median_ns(recorded, plain),
        winner=step.winner.candidate.trial if step.winner is not None else "",
        results=tuple(result.results_of(stage, recorded.runs)),
        rounds=step.found.rounds,
        noise=result.noise_of(step.found),
    )


def _median_ns(recorded: RecordedRuns, runs: Sequence[TrialRun]) -> int:
    return round(median(ran.ns(recorded.measure) for ran in runs))


def _total(recorded: RecordedRuns, way: Way, final: Experiment) -> WhatIfResult:
    """Everything against the job as it was."""
    (arm,) = final.arms
    effect = final.effect(arm)
    runs = [ran for ran in recorded.runs if ran.stage == climb.FINAL]
    plain, with_all = [ran for ran in runs if not ran.kept], [ran for ran in runs if ran.kept]
    before, after = [ran.codes for ran in plain], [ran.codes for ran in with_all]
    return WhatIfResult(
        remedy=" + ".join(way.kept),
        text="everything that was kept, against the job as it was",
        ns=round(median(ns for _, ns in arm.pairs)) if arm.pairs else 0,
        ratio=effect.ratio if effect is not None else arm.ratio,
        low=effect.low if effect is not None else 0.0,
        high=effect.high if effect is not None else 0.0,
        verdict=result.verdict_of(arm, effect),
        rounds=len(arm.pairs),
        smallest_ratio=effect.smallest if effect is not None else 0.0,
        keeps_results=all(keeps_results(one) for one in way.kept),
        gone=tuple(sorted(frozenset.intersection(*before) - frozenset.union(*after))) if before and after else (),
        new=tuple(sorted(frozenset.intersection(*after) - frozenset.union(*before))) if before and after else (),
        note=result.failed(arm),
        peak_before_bytes=result.peak_of(plain),
        peak_after_bytes=result.peak_of(with_all),
    )
