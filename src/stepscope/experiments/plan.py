"""Which trials a first run suggests, best expected gain first.

Two sources: the findings, each with the trials of its remedy (``experiments.proofs``) and its predicted cost, and the
components of the step, each with the interventions that shorten it (``Intervention.lifts``). Input against compute
comes first where both take time: it splits the job and prunes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stepscope.experiments import proofs
from stepscope.experiments.interventions import ALL, parse
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepscope.model.report.finding import Finding, Report

Kind = Literal["gain", "ceiling"]
OTHER = "against"
"""The trial that runs another program instead."""
MIN_RATIO = 0.05
"""Share of the step below which what a trial may remove is not worth it: the smallest change that a few short runs
show is of this size (ratios of equal runs lie between 0.9 and 1.15)."""
ARGUMENTS: Mapping[str, str] = {"batch": "4", "steps-per-execution": "10"}
"""Arguments with which an intervention is tried if none is given."""
REMOVED: Mapping[str, float] = {
    "compute-only": 1.0,
    "no-callbacks": 1.0,
    "no-checkpoints": 1.0,
    "no-summaries": 0.5,
    "gc-off": 1.0,
    "steps-per-execution": 0.4,
    "batch": 0.2,
    "parallel-map": 0.5,
    "cache-input": 0.5,
    "prefetch": 0.3,
    "xla-on": 0.3,
    "mixed-bfloat16": 0.2,
}
"""Share of the lifted components that an intervention is expected to remove, where no finding says it: it only orders
trials. Absent ones are tried if a finding names them, or by name. Source: ratios in
docs/decisions/0047-experiments.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A trial worth its time."""

    trial: str
    """As ``--try`` takes it."""
    kind: Kind
    expected_ratio: float
    """Share of the step that it may remove."""
    reason: str
    """Why it is tried."""


def candidates(report: Report) -> tuple[Candidate, ...]:
    """The trials that a report suggests, each once, the best first."""
    found: dict[str, Candidate] = {}
    for candidate in (*_of_findings(report.findings), *_of_components(_shares(report))):
        known = found.get(candidate.trial)
        if known is None or known.expected_ratio < candidate.expected_ratio:
            found[candidate.trial] = candidate
    return tuple(sorted(found.values(), key=lambda one: -one.expected_ratio))


def named(trials: Iterable[str]) -> tuple[Candidate, ...]:
    """Trials that the user asks for, each once.

    Raises:
        UsageError: one is not known.
    """
    return tuple(
        Candidate(trial=trial, kind=kind_of(trial), expected_ratio=0.0, reason="asked for")
        for trial in dict.fromkeys(trials)
    )


def kind_of(trial: str) -> Kind:
    """Whether a trial shows a gain, or only a ceiling.

    Raises:
        UsageError: it is not known.
    """
    return "gain" if trial in {OTHER, *ENVIRONMENT_REMEDIES} else parse(trial)[0].kind


def keeps_results(trial: str) -> bool:
    """Whether the job computes the same with it.

    Raises:
        UsageError: it is not known.
    """
    return trial in {OTHER, *ENVIRONMENT_REMEDIES} or parse(trial)[0].keeps_results


def _shares(report: Report) -> dict[str, float]:
    return {part.component: part.ratio for part in report.anatomy}


def _of_findings(findings: Iterable[Finding]) -> Iterable[Candidate]:
    for finding in findings:
        ratio = finding.cost.ratio
        if finding.severity == "ask" or ratio < MIN_RATIO:
            continue
        settings = [remedy.id for remedy in finding.remedies if remedy.id in ENVIRONMENT_REMEDIES]
        for trial in (*proofs.trials_of(finding), *settings):
            yield Candidate(
                trial=trial,
                kind=kind_of(trial),
                expected_ratio=ratio,
                reason=f"{finding.code}: {finding.name}",
            )


def _of_components(shares: Mapping[str, float]) -> Iterable[Candidate]:
    for intervention in ALL:
        lifted = {name: shares.get(name, 0.0) for name in intervention.lifts}
        expected = REMOVED.get(intervention.name, 0.0) * sum(lifted.values())
        if expected < MIN_RATIO:
            continue
        argument = ARGUMENTS.get(intervention.name, "")
        largest = max(lifted, key=lambda name: lifted[name])
        yield Candidate(
            trial=f"{intervention.name}:{argument}" if argument else intervention.name,
            kind=intervention.kind,
            expected_ratio=expected,
            reason=f"{largest} takes {100 * shares[largest]:.0f} % of the step",
        )
