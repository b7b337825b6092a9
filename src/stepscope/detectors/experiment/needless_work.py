"""Ops of the step compute what need not be computed: their values showed it, and a trial without them the time.

## What it detects
The claims of the value trial of `stepscope whatif`: ops whose values are the same in all steps, or as in the run
before, or those of another op, that depend on the batch alone while samples come again, that are zero, that repeat for
equal rows or padding, that are wider than what is made of them, or of which most is thrown away.

## Why it matters
Each of these ops is as fast as it can be, so that no duration betrays it. Only its values show that the work is
needless.

## Evidence
From the experiment in this session: `needless_ratio`, share of needless work in all work of the compiled steps, by
the shapes of the ops or by their times in an op trace; `saved_ratio`, the time that the job took less without these
ops, with `rounds`. The interval is at the 99 % level.

## Known limits
It needs an experiment. The time without the ops is the most that a way around them can bring: a lookup in place of a
product costs something, too. A claim that was not timed is information, and so is one whose interval reaches below
3 %. If another detector finds the same waste on the same lines, its finding has the measured time instead.

## Remedy
Depends on the claim: compute it once, use the first result again, look up instead of multiplying, cut before computing.

## References
Decisions 0052 and 0056.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, cost_of, severity_of
from stepscope.detectors.costs import compute_ratio
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView
    from stepscope.model.report.whatif import WhatIfClaim
    from stepscope.model.session.experiment import Experiment
    from stepscope.tables.findings import Cause, Cost
    from stepscope.tables.place import Place

COMPUTE = "component:call"
"""The ops of a trial are those of compiled functions."""
CONFIDENCE, UNTIMED = 0.9, 0.5
"""Confidence in a claim with a proven time, and in another: bench/cases/, docs/benchmarks/whatif-values.md."""
_CAUSES: dict[str, Cause] = {
    "padding": "Data: improper data input",
    "zeros": "API: not using efficient API",
    "unused": "API: not using efficient API",
}
"""All other kinds are inefficient uses of the API."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_saved: Ratio = Ratio(0.03)
    """Lower end of the measured saving from which a claim is more than information. Source: decision 0003."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield a finding for each claim that no trial has refuted."""
    experiment = view.session.experiment
    for claim in experiment.claims if experiment is not None else ():
        if experiment is not None and not _is_refuted(claim):
            yield _seen(view, experiment, claim, params)


def _is_refuted(claim: WhatIfClaim) -> bool:
    """Whether the job is not faster without these ops."""
    return claim.time_ratio >= 1.0 or claim.time_high >= 1.0


def _seen(view: SessionView, experiment: Experiment, claim: WhatIfClaim, params: Params) -> Seen:
    proven = bool(claim.time_high) and 1.0 - claim.time_high >= params.min_saved
    saved = 1.0 - claim.time_ratio
    return Seen(
        title=f"{_ops(claim)} {claim.text}; {_time(claim)}",
        confidence=CONFIDENCE if proven else UNTIMED,
        cost=_cost(view, claim),
        severity=severity_of(saved) if proven else "info",
        cause=_CAUSES.get(claim.kind, "API: inefficient API usage"),
        where=_places(view, claim),
        evidence=_evidence(experiment, claim, params),
        remedies=(Remedy(id=f"needless-{claim.kind}", text=claim.remedy),),
        explanation="The value trial looked at what the compiled steps compute, in steps as they came and in steps on "
        f"the same batch. {_timed(experiment, claim)}",
    )


def _ops(claim: WhatIfClaim) -> str:
    """What computes: the first line, or else the first op."""
    place = next((place for place in claim.places if place.file), None)
    if place is None:
        return f"op {claim.ops[0]}" if claim.ops else "an op"
    name = f" ({place.function})" if place.function and place.function != "<module>" else ""
    return f"line {place.line}{name}"


def _time(claim: WhatIfClaim) -> str:
    if not claim.time_ratio:
        return "what it costs is not measured"
    saved = f"without that the job takes {format_ratio(1.0 - claim.time_ratio)} less time"
    if not claim.time_high:
        return f"{saved}, in too few rounds for an interval"
    return f"{saved} ({format_ratio(1.0 - claim.time_high)} to {format_ratio(1.0 - claim.time_low)})"


def _timed(experiment: Experiment, claim: WhatIfClaim) -> str:
    if not claim.time_ratio:
        return f"Its time is not known: {claim.note}."
    return (
        f"A trial left these ops out in {experiment.rounds} rounds: the most that a way around them can bring is what "
        "it saved."
    )


def _cost(view: SessionView, claim: WhatIfClaim) -> Cost:
    """What the trial saved; unknown, at most the compute, if there was none."""
    if not claim.time_ratio:
        return cost_of(view, 0.0, high=compute_ratio(view), basis="unknown")
    if not claim.time_high:
        return cost_of(view, 0.0, high=1.0 - claim.time_ratio, basis="unknown")
    return cost_of(view, 1.0 - claim.time_ratio, low=1.0 - claim.time_high, high=1.0 - claim.time_low)


def _places(view: SessionView, claim: WhatIfClaim) -> tuple[Place, ...]:
    return tuple(view.place(one.file, one.line, function=one.function) for one in claim.places if one.file)


def _evidence(experiment: Experiment, claim: WhatIfClaim, params: Params) -> tuple[Evidence, ...]:
    share = Evidence(metric="needless_ratio", value=claim.ratio, unit=f"ratio, by {claim.basis}")
    if not claim.time_ratio:
        return (share,)
    return (
        share,
        Evidence(
            metric="saved_ratio",
            value=1.0 - claim.time_ratio,
            unit="ratio",
            threshold=params.min_saved,
            refs=(COMPUTE,),
        ),
        Evidence(metric="rounds", value=experiment.rounds, unit="rounds"),
    )


DETECTOR = Detector(
    code="EXP001",
    name="needless-work",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.EXPERIMENT}),
    params=Params(),
    detect=detect,
)
