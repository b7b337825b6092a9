"""A claim that an experiment has timed, and a detector's finding or question about the same lines, become one.

The detector knows the cause by name, the experiment the time: the finding stays the detector's, with the measured cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.detectors.base import meet, rank

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.tables.findings import Checked, Finding

CLAIMS = "EXP001"
"""Detector of what the value trial claims."""
SAME_ROOT: Mapping[str, frozenset[str]] = {
    "needless-constant": frozenset({"GRF019"}),
    "needless-repeated": frozenset({"GRF016", "HST012", "HST014"}),
    "needless-duplicate": frozenset({"GRF014"}),
    "needless-batch-only": frozenset({"GRF017"}),
    "needless-zeros": frozenset({"GRF012", "GRF021"}),
    "needless-padding": frozenset({"INP008"}),
    "needless-wide-type": frozenset({"GRF009"}),
}
"""Detectors of the same waste, by the remedy of the claim."""


def joined(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, ranked, with no claim that is another's root."""
    found = list(findings)
    for claim in [one for one in findings if one.code == CLAIMS]:
        twin = next((one for one in found if _is_same(claim, one)), None)
        if twin is not None:
            found.remove(claim)
            found[found.index(twin)] = _with_time(twin, claim)
    return tuple(sorted(found, key=rank))


def _codes(claim: Finding) -> frozenset[str]:
    """Codes of the detectors of the same waste."""
    return SAME_ROOT.get(claim.remedies[0].id, frozenset()) if claim.remedies else frozenset()


def _is_same(claim: Finding, other: Finding) -> bool:
    return other.code in _codes(claim) and (meet(claim, other) or meet(other, claim))


def _with_time(finding: Finding, claim: Finding) -> Finding:
    """A finding with the time of a claim, if a trial has proven one."""
    if claim.severity == "info":
        return finding
    return replace(
        finding,
        severity=claim.severity,
        cost=claim.cost,
        confidence=max(finding.confidence, claim.confidence),
        evidence=(*finding.evidence, *claim.evidence),
        related_codes=(*finding.related_codes, claim.code),
    )


def open_questions(checked: Iterable[Checked], findings: Iterable[Finding]) -> tuple[Checked, ...]:
    """Outcomes without the suspicions that a timed claim has answered."""
    answered = frozenset[str]().union(*(_codes(one) for one in findings if one.code == CLAIMS and _is_timed(one)))
    return tuple(one for one in checked if one.detector not in answered)


def _is_timed(claim: Finding) -> bool:
    return claim.cost.basis == "measured"
