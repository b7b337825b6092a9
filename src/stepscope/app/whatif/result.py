"""The report of an experiment: what each trial brings, with its interval and what makes it permanent."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from stepscope._version import __version__
from stepscope.app.record import shown
from stepscope.collector.launch import mask
from stepscope.collector.launch.peers import Contacts
from stepscope.experiments import schedule
from stepscope.experiments.interventions import parse
from stepscope.experiments.plan import OTHER
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.model.report.whatif import WhatIfNoise, WhatIfPart, WhatIfPeer, WhatIfReport, WhatIfResult, WhatIfRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.app.whatif.runs import Ran, Runner
    from stepscope.experiments.plan import Candidate
    from stepscope.experiments.schedule import Arm, Experiment
    from stepscope.experiments.statistics import Effect
    from stepscope.model.report.finding import Component
    from stepscope.model.report.whatif import Measure, Verdict

NO_TIME = "there was no time for it: raise --time"


def build(runner: Runner, found: Experiment, runs: Sequence[Ran], measure: Measure, first: Ran | None) -> WhatIfReport:
    """The report. ``first``: the run that suggested what to try."""
    plain = [ran for ran in runs if not ran.trial]
    times = plain[0].report.session.step_times
    contacts = (first or runs[0]).contacts or Contacts()
    results = [_result(arm, found.effect(arm), runs) for arm in found.arms]
    results += [_left_out(candidate) for candidate in found.not_tried]
    return WhatIfReport(
        version=__version__,
        command=tuple(mask.mask_command(runner.argv)),
        measure=measure,
        step=times.source if measure != "run" and times is not None else "",
        rounds=found.rounds,
        ns=round(median(ran.ns(measure) for ran in plain)),
        results=tuple(sorted(results, key=_order)),
        runs=tuple(_run(ran, measure) for ran in ([first] if first is not None else []) + list(runs)),
        folder=shown(runner.folder),
        noise=_noise(found.against_itself()),
        isolated=runner.isolation is not None,
        network=runner.networked,
        interrupted=found.interrupted,
        trial_s=runner.seconds,
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


def _order(result: WhatIfResult) -> tuple[int, float]:
    """Gains first, then ceilings, then what was not measured; the largest first."""
    measured = result.verdict not in {"not-possible", "not-tried"}
    return (0 if measured and result.kind == "gain" else 1 if measured else 2, result.ratio)


def _run(ran: Ran, measure: Measure) -> WhatIfRun:
    return WhatIfRun(
        round=ran.round,
        remedy=ran.trial,
        ns=round(ran.ns(measure)),
        findings=tuple(sorted(ran.codes)),
        session=ran.session,
    )


def _result(arm: Arm, effect: Effect | None, runs: Sequence[Ran]) -> WhatIfResult:
    with_it = [ran for ran in runs if ran.trial == arm.candidate.trial and not ran.note]
    before = [ran.codes for ran in runs if not ran.trial]
    after = [ran.codes for ran in with_it]
    return WhatIfResult(
        remedy=arm.candidate.trial,
        text=_text(arm.candidate.trial),
        ns=round(median(ns for _, ns in arm.pairs)) if arm.pairs else 0,
        ratio=effect.ratio if effect is not None else arm.ratio,
        low=effect.low if effect is not None else 0.0,
        high=effect.high if effect is not None else 0.0,
        verdict=_verdict(arm, effect),
        kind=arm.candidate.kind,
        rounds=len(arm.pairs),
        smallest_ratio=effect.smallest if effect is not None else 0.0,
        keeps_results=_keeps_results(arm.candidate.trial),
        expected_ratio=arm.candidate.expected_ratio,
        reason=arm.candidate.reason,
        lasting=_lasting(arm.candidate.trial),
        gone=tuple(sorted(frozenset.intersection(*before) - frozenset.union(*after))) if after else (),
        new=tuple(sorted(frozenset.intersection(*after) - frozenset.union(*before))) if after else (),
        note=arm.why,
    )


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
        expected_ratio=candidate.expected_ratio,
        reason=candidate.reason,
        note=NO_TIME,
    )


def _verdict(arm: Arm, effect: Effect | None) -> Verdict:
    if arm.why:
        return "not-possible"
    return schedule.answer(effect) if effect is not None else "undecided"


def _noise(effect: Effect | None) -> WhatIfNoise | None:
    return WhatIfNoise(ratio=effect.ratio, low=effect.low, high=effect.high) if effect is not None else None


def _text(trial: str) -> str:
    if trial == OTHER:
        return "the other program"
    return ENVIRONMENT_REMEDIES[trial].text if trial in ENVIRONMENT_REMEDIES else parse(trial)[0].text


def _lasting(trial: str) -> str:
    """What makes a trial permanent."""
    if trial == OTHER:
        return "that program's code"
    if trial in ENVIRONMENT_REMEDIES:
        return f"stepscope run --apply {trial} ..., or the variables above"
    intervention, argument = parse(trial)
    return intervention.lasting.replace("ARGUMENT", argument)


def _keeps_results(trial: str) -> bool:
    return trial in {OTHER, *ENVIRONMENT_REMEDIES} or parse(trial)[0].keeps_results
