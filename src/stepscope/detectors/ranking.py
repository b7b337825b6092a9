"""The order of findings, and whether two are about one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.tables.findings import Finding


def rank(finding: Finding) -> tuple[int, bool, float, str]:
    """Sort key of a report's findings: by cost, with what the user can change before what the machine does.

    A question comes after what is known to cost something, and before information.

    The machine's findings were set up elsewhere: they name no line of the job, and no setting that ``whatif`` can try.
    Information whose saving is not known is ordered by the share that it is about.
    """
    own = bool(finding.where) or any(remedy.what_if for remedy in finding.remedies)
    machine = finding.introduced_stage == "environment setting" and not own
    cost = finding.cost
    about = cost.high if finding.severity == "info" and cost.basis == "unknown" else cost.weight
    level = {"ask": 1, "info": 2}.get(finding.severity, 0)
    return level, machine, -about, finding.code


def meet(one: Finding, other: Finding) -> bool:
    """Whether the first place of a finding, or its function, is among the other finding's places. The lines of a script
    outside of its functions are not one function.
    """
    if not one.where:
        return False
    first = one.where[0]
    end = first.end_line or first.line
    named = first.function not in {"", "<module>"}
    return any(
        p.file == first.file
        and ((p.line <= end and first.line <= (p.end_line or p.line)) or (named and p.function == first.function))
        for p in other.where
    )
