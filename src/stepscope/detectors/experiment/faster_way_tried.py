"""A change was tried on this job, and it takes less time: the trials of an experiment.

## What it detects
Trials of `stepscope whatif` on this run that took less time than the unchanged job, at the 99 % level. A gain is a
change that lasts (a larger batch, a parallel map, another allocator). A ceiling leaves something out: it is information
about where the time is, since what was left out may be needed.

## Why it matters
Nothing about the cause had to be guessed: one thing was changed, and the time was measured.

## Evidence
From the experiment in this session: `saved_ratio`, the time that the job took less with the change, and the
`rounds`, or `pairs` of blocks of one process, in which it was compared.

## Known limits
It needs an experiment. Only the best trial of a kind is reported (one size of a batch), three gains and three ceilings
at most. Gains do not add up. A trial whose interval reaches below 3 % is not reported.

## Remedy
The line, variable or option that makes the change permanent.

## References
Decisions 0047 and 0056.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, cost_of, severity_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.view import SessionView
    from stepscope.model.report.whatif import WhatIfResult
    from stepscope.model.session.experiment import Experiment
    from stepscope.tables.findings import Cost

SKIPPED = frozenset({"without-ops", "against"})
"""Trials that EXP001 tells, and the comparison with another program, which is no change of this one."""
CONFIDENCE = 0.95
"""The level of the intervals is 99 %; the same command on another day is another experiment."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_saved: Ratio = Ratio(0.03)
    """Lower end of the measured saving from which a trial is reported. Source: decision 0003."""
    most: int = 3
    """Gains, and ceilings, that are reported at most. Source: more of them hide the report's other findings."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield the best gains, then the largest ceilings."""
    experiment = view.session.experiment
    if experiment is None:
        return
    faster = [one for one in experiment.results if one.high and 1.0 - one.high >= params.min_saved]
    sure = [one for one in faster if one.verdict == "faster" and _name(one) not in SKIPPED]
    for kind in ("gain", "ceiling"):
        for result in _best([one for one in sure if one.kind == kind])[: params.most]:
            yield _seen(view, experiment, result, params)


def _name(result: WhatIfResult) -> str:
    return result.remedy.partition(":")[0]


def _best(results: Sequence[WhatIfResult]) -> list[WhatIfResult]:
    """The best of each kind of trial, the best first."""
    found: dict[str, WhatIfResult] = {}
    for result in sorted(results, key=lambda one: one.ratio):
        found.setdefault(_name(result), result)
    return list(found.values())


def _seen(view: SessionView, experiment: Experiment, result: WhatIfResult, params: Params) -> Seen:
    gain, saved = result.kind == "gain", 1.0 - result.ratio
    interval = f"{format_ratio(1.0 - result.high)} to {format_ratio(1.0 - result.low)}"
    what = "makes" if gain else "leaves something out and makes"
    changed = "" if result.keeps_results or not gain else "; it changes what the job computes"
    return Seen(
        title=f"tried: {result.remedy} {what} a {experiment.measure} take {format_ratio(saved)} less time ({interval})"
        f"{changed}",
        confidence=CONFIDENCE,
        cost=_cost(view, result),
        severity=severity_of(saved) if gain else "info",
        evidence=(
            Evidence(metric="saved_ratio", value=saved, unit="ratio", threshold=params.min_saved),
            _seen_times(result),
        ),
        remedies=(Remedy(id=f"tried-{_name(result)}", text=result.lasting or result.text),),
        explanation=f"{result.text.rstrip('.')}. The job was run with it and without in turn; the interval is at the "
        f"99 % level.{'' if gain else ' It is the most that any change of this part can bring.'}",
    )


def _seen_times(result: WhatIfResult) -> Evidence:
    """How often it was compared: pairs of blocks of one process, or rounds of whole runs."""
    if result.pairs:
        return Evidence(metric="pairs", value=result.pairs, unit="pairs")
    return Evidence(metric="rounds", value=result.rounds, unit="rounds")


def _cost(view: SessionView, result: WhatIfResult) -> Cost:
    """A gain's saving; of a ceiling, which part can be saved is not known."""
    low, high = 1.0 - result.high, 1.0 - result.low
    if result.kind == "gain":
        return cost_of(view, 1.0 - result.ratio, low=low, high=high)
    return cost_of(view, 0.0, high=1.0 - result.ratio, basis="unknown")


DETECTOR = Detector(
    code="EXP002",
    name="faster-way-tried",
    needs=frozenset({Signal.EXPERIMENT}),
    params=Params(),
    detect=detect,
)
