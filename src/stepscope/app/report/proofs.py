"""The command that measures a finding's remedy without a change of the code, where an experiment can."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from stepscope.experiments import proofs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.finding import Finding
    from stepscope.model.session.session import Manifest


def annotated(findings: Iterable[Finding], manifest: Manifest) -> tuple[Finding, ...]:
    """Findings of a run with the command of their first trial, except those whose remedies have a command already."""
    if manifest.mode != "run" or not manifest.command:
        return tuple(findings)
    command = shlex.join(manifest.command)
    return tuple(_with_proof(finding, command) for finding in findings)


def _with_proof(finding: Finding, command: str) -> Finding:
    trials = proofs.trials_of(finding)
    if not (trials and finding.remedies) or any(remedy.what_if is not None for remedy in finding.remedies):
        return finding
    first, *others = finding.remedies
    proof = f"stepscope whatif --try {shlex.quote(trials[0])} -- {command}"
    return msgspec.structs.replace(finding, remedies=(msgspec.structs.replace(first, what_if=proof), *others))
