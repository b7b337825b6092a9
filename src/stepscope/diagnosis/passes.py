"""The passes over the findings, from what the detectors found to what the report says: ``PASSES`` is their order.

Each takes the diagnosis as it is and gives it back changed; none knows of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.detectors import base, registry
from stepscope.diagnosis import capture_account, death, exclusive, known_defects, proofs, proven, reasons, settle
from stepscope.model.report.report import SourceCheck
from stepscope.tables.errors import DamagedError
from stepscope.tables.findings import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from stepscope.causes.host.line_heat import HotLines
    from stepscope.derive.view import SessionView
    from stepscope.model.report.input_bound import InputBound
    from stepscope.model.report.ledger import LedgerEntry
    from stepscope.model.report.report import Component
    from stepscope.tables.findings import Checked, Finding

    Pass = Callable[["Diagnosis", "Facts"], "Diagnosis"]

MAX_STATIC = 200
"""Most static findings without a cost that are listed; further ones are only counted."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What is said of a session."""

    findings: tuple[Finding, ...]
    checked: tuple[Checked, ...]
    """What became of each detector."""
    ledger: tuple[LedgerEntry, ...] = ()
    """The parts of the job's wall time."""
    diagnostics: tuple[Diagnostic, ...] = ()
    source_check: SourceCheck | None = None


class Facts(Struct, frozen=True, kw_only=True):
    """What the passes go by besides the diagnosis."""

    view: SessionView
    lines: HotLines
    """Lines of the user's code with their time."""
    anatomy: tuple[Component, ...]
    """The mean step."""
    bound: InputBound | None
    """What the input could deliver at best."""
    parts: Collection[str]
    """Parts of the job (``model.frameworks``)."""


def build(facts: Facts, ledger: Sequence[LedgerEntry]) -> Diagnosis:
    """The diagnosis of a session. ``ledger``: the parts of its wall time as they were measured."""
    findings, checked, failures = base.run(registry.ALL, facts.view)
    found = Diagnosis(findings=findings, checked=checked, ledger=tuple(ledger), diagnostics=failures)
    for _, change in PASSES:
        found = change(found, facts)
    return found


def _with_sources(found: Diagnosis, facts: Facts) -> Diagnosis:
    from stepscope.diagnosis.static import (
        join,
        static_check,
    )  # the sidecar of a job that runs for days needs no checker

    try:
        static = static_check.check(facts.view, facts.lines.files())
        if static is None:
            return found
        joined = join.join(facts.view, found.findings, found.checked, static.hits, facts.lines)
    except DamagedError:
        raise
    except Exception as error:  # noqa: BLE001 - a wall: what was measured is reported all the same
        failed = f"the static check of the sources failed: {type(error).__name__}: {error}"
        return replace(found, diagnostics=(*found.diagnostics, Diagnostic(code="DX075", text=failed)))
    said = SourceCheck(
        tensorflow=".".join(map(str, static.target.tensorflow)),
        files=static.files,
        lines=static.lines,
        rules=static.rules,
        findings=joined.rest[:MAX_STATIC],
        not_shown=max(0, len(joined.rest) - MAX_STATIC),
        left_out=static.left_out,
        command=static_check.command(static.target, joined.rest),
    )
    diagnostics = (*found.diagnostics, *static.diagnostics)
    return replace(found, findings=joined.findings, source_check=said, diagnostics=diagnostics)


def _without_doubles(found: Diagnosis, _facts: Facts) -> Diagnosis:
    return replace(found, findings=proven.joined(found.findings))


def _with_deaths(found: Diagnosis, _facts: Facts) -> Diagnosis:
    return replace(found, findings=death.joined(found.findings))


def _settled(found: Diagnosis, facts: Facts) -> Diagnosis:
    settled = settle.build(facts.view, found.findings, found.checked, facts.anatomy, found.ledger)
    return replace(
        found,
        findings=settled.findings,
        checked=(*found.checked, *settled.checked),
        ledger=settled.ledger,
        diagnostics=(*found.diagnostics, *settled.failures),
    )


def _with_reasons(found: Diagnosis, facts: Facts) -> Diagnosis:
    return replace(found, findings=reasons.annotated(found.findings, facts.view))


def _with_captures(found: Diagnosis, facts: Facts) -> Diagnosis:
    return replace(found, findings=capture_account.annotated(found.findings, facts.view.session.manifest))


def _with_shared_time(found: Diagnosis, facts: Facts) -> Diagnosis:
    return replace(found, findings=exclusive.annotated(found.findings, facts.anatomy))


def _with_proofs(found: Diagnosis, facts: Facts) -> Diagnosis:
    manifest = facts.view.session.manifest
    return replace(found, findings=proofs.annotated(found.findings, manifest, facts.bound, facts.parts))


def _with_known_defects(found: Diagnosis, facts: Facts) -> Diagnosis:
    return replace(found, findings=known_defects.annotated(found.findings, facts.view))


PASSES: tuple[tuple[str, Pass], ...] = (
    ("findings of the checker in the same lines are joined", _with_sources),
    ("a claim that another finding proves is left out", _without_doubles),
    ("what is found at the line where the job died names its cause", _with_deaths),
    ("parts of the wall time are settled by findings; general detectors speak of the rest", _settled),
    ("findings say what their lines do", _with_reasons),
    ("evidence of captures has their cost", _with_captures),
    ("of several findings about the same time each has what it alone saves", _with_shared_time),
    ("the first trial that proves a remedy is offered", _with_proofs),
    ("known defects of the versions that ran are named", _with_known_defects),
)
"""What each does, and it."""
