"""The command that measures a finding's remedy without a change of the code, where an experiment can."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from stepscope.experiments import interventions, proofs
from stepscope.model.session.session import ASKED, CELL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stepscope.causes.input.input_bound import EditKind
    from stepscope.model.report.input_bound import InputBound
    from stepscope.model.session.session import Manifest
    from stepscope.tables.findings import Finding


OF_PIPELINES = frozenset({"INP001", "INP002", "INP003", "INP005"})
"""Findings whose remedies are edits of the pipeline that the steps consume."""
EDITS: dict[str, EditKind] = {
    **dict.fromkeys(("filter-first", "shard-first", "take-first", "skip-first"), "earlier"),
    "batch-before-map": "batch-first",
    "cache-after-map": "cache",
}
"""Remedies that the input's bound has as an edit, with its kind."""


def annotated(
    findings: Iterable[Finding], manifest: Manifest, bound: InputBound | None = None, parts: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Findings of a run with the command of their first trial, except those whose remedies have a command already.

    ``parts``: of the job (``model.frameworks``); a trial that reaches none of them is not offered.
    """
    if manifest.mode not in ASKED or not manifest.command:
        return tuple(findings)
    asks = ("%stepscope whatif", "") if manifest.mode == CELL else ("stepscope whatif", shlex.join(manifest.command))
    return tuple(_with_proof(_with_edit(finding, bound), asks, parts) for finding in findings)


def _with_edit(finding: Finding, bound: InputBound | None) -> Finding:
    """A finding whose first remedy is an edit of the input, with the trial of that edit."""
    if bound is None or finding.code not in OF_PIPELINES or not finding.remedies:
        return finding
    first, *others = finding.remedies
    kind = EDITS.get(first.id)
    proof = next((edit.what_if for edit in bound.edits if edit.kind == kind and edit.what_if is not None), None)
    if proof is None or first.what_if is not None:
        return finding
    return msgspec.structs.replace(finding, remedies=(msgspec.structs.replace(first, what_if=proof), *others))


def _with_proof(finding: Finding, asks: tuple[str, str], parts: Collection[str]) -> Finding:
    trials = [trial for trial in proofs.trials_of(finding) if interventions.reaches(trial, parts)]
    if not (trials and finding.remedies) or any(remedy.what_if is not None for remedy in finding.remedies):
        return finding
    first, *others = finding.remedies
    command, program = asks
    proof = f"{command} --try {shlex.quote(trials[0])}{f' -- {program}' if program else ''}"
    return msgspec.structs.replace(finding, remedies=(msgspec.structs.replace(first, what_if=proof), *others))
