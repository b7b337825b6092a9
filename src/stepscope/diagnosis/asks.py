"""A suspicion as a finding: at most one a report asks for the capture that would decide it.

It counts below every finding with a cost: nothing is known to be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.detectors import registry
from stepscope.tables.findings import Cost, Finding, Remedy
from stepscope.tables.units import format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.tables.findings import Checked

MIN_SHARE = 0.05
"""Of steady wall time that a suspicion may cost: less is not worth a question."""
CONFIDENCE = 0.5
COMMANDS = {"ops": "stepscope trace JOB", "native": "stepscope trace JOB --kind native"}
"""Command that makes each kind of capture."""


def one(checked: Iterable[Checked], findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The suspicion with the largest share, as a finding; none where a finding already asks."""
    if any(finding.severity == "ask" for finding in findings):
        return ()
    open_ones = [c for c in checked if c.outcome == "undecided" and c.suspicion and c.capture in COMMANDS]
    worth = [c for c in open_ones if c.suspected_ratio >= MIN_SHARE]
    most = max(worth, key=lambda c: c.suspected_ratio, default=None)
    return (_finding(most),) if most is not None else ()


def _finding(checked: Checked) -> Finding:
    detector = next(d for d in registry.ALL if d.code == checked.detector)
    return Finding(
        code=detector.code,
        name=detector.name,
        title=f"{checked.suspicion}: what it costs is not measured, at most {format_ratio(checked.suspected_ratio)} "
        "of the steps",
        severity="ask",
        confidence=CONFIDENCE,
        symptom=detector.symptom,
        cause=detector.cause,
        introduced_stage=detector.introduced_stage,
        exposed_stage=detector.exposed_stage or "training",
        pipeline_stage=detector.pipeline_stage,
        where=checked.where,
        cost=Cost(ratio=0.0, low=0.0, high=checked.suspected_ratio, basis="unknown"),
        remedies=(
            Remedy(
                id="capture-it",
                text="capture some steps while the job runs: the capture decides",
                what_if=COMMANDS[checked.capture],
            ),
        ),
        explanation=checked.hint,
    )
