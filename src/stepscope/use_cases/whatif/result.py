"""The report of an experiment: what each trial brings, with its interval and what makes it permanent."""

from __future__ import annotations

import os
import shlex
from functools import partial
from statistics import fmean, geometric_mean, median
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.experiments import combine, schedule
from stepscope.experiments.interventions import parse
from stepscope.experiments.plan import OTHER, keeps_results
from stepscope.launcher import apply, mask
from stepscope.launcher.peers import Contacts
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES, OF_MEMORY
from stepscope.model.report.whatif import WhatIfNoise, WhatIfPart, WhatIfPeer, WhatIfReport, WhatIfResult, WhatIfRun
from stepscope.tables.errors import UsageError
from stepscope.use_cases.record import shown
from stepscope.use_cases.whatif import memory_sides, state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.experiments.plan import Candidate
    from stepscope.experiments.schedule import Arm, Experiment
    from stepscope.experiments.statistics import Effect
    from stepscope.model.report.report import Component
    from stepscope.model.report.whatif import Measure, Verdict, WhatIfCurve, WhatIfMemory, WhatIfWay
    from stepscope.use_cases.whatif.recorded import RecordedRuns
    from stepscope.use_cases.whatif.runs import TrialRun

NO_TIME = "there was no time for it: raise --time"


class Stage(Struct, frozen=True, kw_only=True):
    """A part of an experiment: rounds of trials with the same changes kept."""

    found: Experiment
    name: str = ""
    """As its runs have it."""
    kept: tuple[str, ...] = ()
    """In effect in all its runs."""


def build(
    recorded: RecordedRuns,
    stages: Sequence[Stage],
    *,
    way: WhatIfWay | None = None,
    curves: Sequence[WhatIfCurve] = (),
    interrupted: bool = False,
) -> WhatIfReport:
    """The report. ``stages``: those on the unchanged job, the main one first; none if there are curves alone."""
    runner, measure = recorded.runner, recorded.measure
    plain = [ran for ran in recorded.runs if not ran.trial and not ran.kept]
    times = plain[0].report.session.step_times
    contacts = (*recorded.looks, *recorded.runs)[0].contacts or Contacts()
    main = stages[0].found if stages else None
    results = [one for stage in stages for one in results_of(stage, recorded.runs)]
    return WhatIfReport(
        version=__version__,
        command=tuple(mask.mask_command(runner.argv)),
        measure=measure,
        step=times.source if measure != "run" and times is not None else "",
        rounds=main.rounds if main is not None else max(ran.round for ran in plain),
        ns=unchanged_ns(recorded),
        results=tuple(sorted(map(partial(_described, runner.other_text), results), key=_order)),
        runs=tuple(as_run(ran, measure) for ran in (*recorded.looks, *recorded.runs)),
        folder=shown(runner.folder),
        noise=noise_of(main) if main is not None else None,
        isolated=runner.isolation is not None,
        network=runner.networked,
        interrupted=interrupted,
        trial_s=runner.seconds,
        way=way,
        curves=tuple(curves),
        against=runner.other_text,
        resume=state.resume_command(runner.folder),
        parts=_parts(plain[0].report.anatomy, results) if measure != "run" else (),
        peers=tuple(WhatIfPeer(peer=one.name, attempts=one.attempts) for one in contacts.peers),
        trackers=contacts.trackers,
    )


def _parts(anatomy: Sequence[Component], results: Sequence[WhatIfResult]) -> tuple[WhatIfPart, ...]:
    """The step, each component with the ceiling that leaves it out: a ceiling belongs to the largest that it lifts."""
    shares = {part.component: part.ratio for part in anatomy}
    ceilings = dict[str, WhatIfResult]()
    for result in results:
        if result.kind == "ceiling" and result.ns and not parse(result.remedy)[1]:
            lifted = max(parse(result.remedy)[0].lifts, key=lambda name: shares.get(name, 0.0))
            ceilings.setdefault(lifted, result)
    rows = sorted(anatomy, key=lambda part: -part.ratio)
    return tuple(_part(part, ceilings.get(part.component)) for part in rows if part.ratio > 0)


def _part(part: Component, ceiling: WhatIfResult | None) -> WhatIfPart:
    if ceiling is None:
        return WhatIfPart(component=part.component, ratio=part.ratio, ns=part.ns_per_step)
    return WhatIfPart(
        component=part.component,
        ratio=part.ratio,
        ns=part.ns_per_step,
        trial=ceiling.remedy,
        saved_ratio=1 - ceiling.ratio,
        low=1 - ceiling.high if ceiling.high else 0.0,
        high=1 - ceiling.low if ceiling.high else 0.0,
    )


def _described(other: str, result: WhatIfResult) -> WhatIfResult:
    """The result, with what the other program is."""
    return msgspec.structs.replace(result, text=f"{result.text}: {other}") if result.remedy == OTHER else result


def unchanged_ns(recorded: RecordedRuns) -> int:
    """Time of the job as it is: median over its runs."""
    plain = [ran for ran in recorded.runs if not ran.trial and not ran.kept]
    return round(median(ran.ns(recorded.measure) for ran in plain))


def results_of(stage: Stage, runs: Sequence[TrialRun]) -> list[WhatIfResult]:
    """What the trials of a stage brought, gains first."""
    own = [ran for ran in runs if ran.stage == stage.name]
    results = [_told(result_of(arm, stage.found.effect(arm), own), stage.found, arm) for arm in stage.found.arms]
    return sorted([*results, *map(_left_out, stage.found.not_tried)], key=_order)


def _told(result: WhatIfResult, found: Experiment, arm: Arm) -> WhatIfResult:
    """The result, with how it came about: by blocks of a process, or by whole runs."""
    if not arm.switched:
        return msgspec.structs.replace(result, whole_why=arm.whole_why)
    return msgspec.structs.replace(result, pairs=len(arm.pairs), noise=_noise(found.off_against_off(arm)))


def _order(result: WhatIfResult) -> tuple[int, float]:
    """Gains first, then ceilings, then what was not measured; the largest first."""
    measured = result.verdict not in {"not-possible", "not-tried"}
    return (0 if measured and result.kind == "gain" else 1 if measured else 2, result.ratio)


def as_run(ran: TrialRun, measure: Measure) -> WhatIfRun:
    """A run as the report has it."""
    return WhatIfRun(
        round=ran.round,
        remedy=ran.trial,
        ns=round(ran.ns(measure)),
        findings=tuple(sorted(ran.codes)),
        session=ran.session,
        switched=ran.judged is not None,
        kept=ran.kept,
        stage=ran.stage,
    )


def result_of(arm: Arm, effect: Effect | None, runs: Sequence[TrialRun]) -> WhatIfResult:
    """The result of a trial; ``runs``: those of its stage."""
    own = [ran for ran in runs if ran.trial == arm.candidate.trial and not ran.note]
    with_it = [ran for ran in own if ran.judged is None]  # findings of a switched run are of both
    plain = [ran for ran in runs if not ran.trial]
    before = [ran.codes for ran in plain]
    cpu = _cpu(plain, own) if arm.candidate.trial in OF_MEMORY else None
    after = [ran.codes for ran in with_it]
    return WhatIfResult(
        remedy=arm.candidate.trial,
        text=_text(arm.candidate.trial),
        ns=round(geometric_mean([ns for _, ns in arm.pairs])) if arm.pairs else 0,
        ratio=effect.ratio if effect is not None else arm.ratio,
        low=effect.low if effect is not None else 0.0,
        high=effect.high if effect is not None else 0.0,
        verdict=verdict_of(arm, effect),
        kind=arm.candidate.kind,
        rounds=sum(ran.judged is not None and bool(ran.judged.pairs) for ran in own) or len(arm.pairs),
        smallest_ratio=effect.smallest if effect is not None else 0.0,
        keeps_results=keeps_results(arm.candidate.trial),
        expected_ratio=arm.candidate.expected_ratio,
        reason=arm.candidate.reason,
        lasting=lasting(arm.candidate.trial, runs),
        gone=tuple(sorted(frozenset.intersection(*before) - frozenset.union(*after))) if after else (),
        new=tuple(sorted(frozenset.intersection(*after) - frozenset.union(*before))) if after else (),
        note=failed(arm),
        memory_before=_memory(plain, arm),
        memory_after=_memory(own, arm),
        peak_before_bytes=peak_of(plain) if with_it else 0,
        peak_after_bytes=peak_of(with_it),
        cpu_ratio=cpu.ratio if cpu is not None else 0.0,
        cpu_low=cpu.low if cpu is not None else 0.0,
        cpu_high=cpu.high if cpu is not None else 0.0,
        before_ns=round(geometric_mean([ns for ns, _ in arm.pairs])) if arm.pairs else 0,
    )


def _cpu(plain: Sequence[TrialRun], own: Sequence[TrialRun]) -> Effect | None:
    """What a trial changes in the CPU time of a step: each of its runs with the unchanged ones of its round."""
    pairs = [([_cpu_ns(one) for one in plain if one.round == ran.round], _cpu_ns(ran)) for ran in own]
    known = [(fmean(before), after) for before, after in pairs if before and all((*before, after))]
    return memory_sides.cpu_effect([before for before, _ in known], [after for _, after in known])


def _cpu_ns(ran: TrialRun) -> float:
    return (ran.memory.cpu_ns_per_step or 0.0) if ran.memory is not None else 0.0


def peak_of(runs: Sequence[TrialRun]) -> int:
    """Most resident memory that the job held: the median over some runs; 0: unknown."""
    known = [ran.peak_bytes for ran in runs if ran.peak_bytes]
    return round(median(known)) if known else 0


def _memory(runs: Sequence[TrialRun], arm: Arm) -> WhatIfMemory | None:
    """The memory of some runs, if the trial changes it."""
    if arm.candidate.trial not in OF_MEMORY:
        return None
    return memory_sides.typical([ran.memory for ran in runs if ran.memory is not None])


def failed(arm: Arm) -> str:
    """What is to be said of runs that failed."""
    return arm.why or "; ".join(f"round {number} failed: {why}" for number, why in arm.failures)


def _left_out(candidate: Candidate) -> WhatIfResult:
    return WhatIfResult(
        remedy=candidate.trial,
        text=_text(candidate.trial),
        ns=0,
        ratio=1.0,
        low=0.0,
        high=0.0,
        verdict="not-tried",
        kind=candidate.kind,
        keeps_results=keeps_results(candidate.trial),
        expected_ratio=candidate.expected_ratio,
        reason=candidate.reason,
        note=NO_TIME,
    )


def verdict_of(arm: Arm, effect: Effect | None) -> Verdict:
    """What an effect says, or that there is none."""
    if arm.why:
        return "not-possible"
    return schedule.answer(effect) if effect is not None else "undecided"


def noise_of(found: Experiment) -> WhatIfNoise | None:
    """The job against itself."""
    return _noise(found.against_itself())


def _noise(effect: Effect | None) -> WhatIfNoise | None:
    return WhatIfNoise(ratio=effect.ratio, low=effect.low, high=effect.high) if effect is not None else None


def _text(trial: str) -> str:
    if trial == OTHER:
        return "the other program"
    return ENVIRONMENT_REMEDIES[trial].text if trial in ENVIRONMENT_REMEDIES else parse(trial)[0].text


def lasting(trial: str, runs: Sequence[TrialRun] = (), kept: tuple[str, ...] = ()) -> str:
    """What makes a trial permanent, after ``kept``; of a setting of the environment the line to paste."""
    if trial == OTHER:
        return "that program's code"
    if trial in ENVIRONMENT_REMEDIES:
        return _setting(trial, runs, kept)
    intervention, argument = parse(trial)
    return intervention.lasting.replace("ARGUMENT", argument)


def _setting(trial: str, runs: Sequence[TrialRun], kept: tuple[str, ...]) -> str:
    if not ENVIRONMENT_REMEDIES[trial].built:  # else the library lies in a cache of ours
        try:
            before = apply.environment(combine.settings(combine.merged(kept, trial)[:-1]), os.environ)
            return apply.shell_line(trial, before)
        except UsageError:  # an experiment of another machine, whose library is not installed here
            pass
    command = mask.mask_command(list(runs[0].report.session.command)) if runs else ["..."]
    return shlex.join(["stepscope", "run", "--apply", trial, "--", *command])
