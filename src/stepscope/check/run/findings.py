"""Conversion of a rule's hit into the finding that ``run`` and ``check`` share."""

from __future__ import annotations

from stepscope.check.hits import Hit, Span
from stepscope.check.rule import Rule
from stepscope.check.source.source import Cells
from stepscope.tables.findings import Cost, Evidence, Finding, Remedy, Safety
from stepscope.tables.place import Place

PLAIN = Cells()
"""Cells of a file that is not a notebook."""


def place(span: Span, cells: Cells = PLAIN) -> Place:
    """A span as a report names it; in a notebook by cell and line within the cell."""
    cell, line = cells.at(span.line)
    shift = span.line - line
    return Place(
        file=span.path,
        line=line,
        end_line=span.end_line - shift,
        function=span.function,
        column=span.column,
        end_column=span.end_column,
        cell=cell or None,
    )


def finding(rule: Rule, hit: Hit, cells: Cells = PLAIN) -> Finding:
    """The finding of a hit. Its cost is the prior of the rule's measured pair; only a run shows the actual cost."""
    safety: Safety = "review"
    if hit.fix is not None:
        safety = hit.fix.safety
    return Finding(
        code=hit.code,
        name=rule.name,
        title=hit.message,
        severity=hit.reported_severity,
        confidence=hit.confidence,
        symptom=rule.symptom,
        cause=rule.cause,
        introduced_stage=rule.introduced_stage,
        exposed_stage=rule.exposed_stage,
        pipeline_stage=rule.pipeline_stage,
        where=(place(hit.span, cells), *(place(s, cells if s.path == hit.span.path else PLAIN) for s in hit.also)),
        evidence=(Evidence(metric="pattern_speedup", value=rule.speedup, unit="ratio"), *_runs(hit)),
        cost=Cost(ratio=0.0, low=0.0, high=max(0.0, 1.0 - 1.0 / rule.speedup), basis="prior"),
        remedies=(Remedy(id=rule.name, text=rule.remedy, safety=safety, fix=hit.fix.title if hit.fix else ""),),
        rare=hit.often.rare,
        explanation=hit.fix.behaviour if hit.fix is not None else "",
        origin="static",
        related_codes=rule.related,
    )


def _runs(hit: Hit) -> tuple[Evidence, ...]:
    """How often the place runs, where the source says so."""
    runs = hit.often.runs
    return (Evidence(metric="runs", value=runs, unit="count"),) if runs is not None else ()
