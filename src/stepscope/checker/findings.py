"""From a rule's hit to the finding that ``run`` and ``check`` share."""

from __future__ import annotations

from stepscope.checker.hits import Hit, Span
from stepscope.checker.rule import Rule
from stepscope.checker.source import Source
from stepscope.model.finding import Cost, Evidence, Finding, Place, Remedy, Safety


def place(span: Span, source: Source | None = None) -> Place:
    """A span as a report names it; in a notebook by cell and the line in it."""
    cell, line = source.cell(span.line) if source is not None else (0, span.line)
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


def finding(rule: Rule, hit: Hit, source: Source | None = None) -> Finding:
    """The finding of a hit. Its cost is the prior of the rule's measured pair: what it is here, only a run shows."""
    safety: Safety = "review"
    if hit.fix is not None:
        safety = hit.fix.safety
    return Finding(
        code=hit.code,
        name=rule.name,
        title=hit.message,
        severity=hit.severity,
        confidence=hit.confidence,
        symptom=rule.symptom,
        cause=rule.cause,
        introduced_stage=rule.introduced_stage,
        exposed_stage=rule.exposed_stage,
        pipeline_stage=rule.pipeline_stage,
        where=(place(hit.span, source), *(place(s, source if s.path == hit.span.path else None) for s in hit.also)),
        evidence=(Evidence(metric="pattern_speedup", value=rule.speedup, unit="ratio"),),
        cost=Cost(ratio=0.0, low=0.0, high=max(0.0, 1.0 - 1.0 / rule.speedup), basis="prior"),
        remedies=(Remedy(id=rule.name, text=rule.remedy, safety=safety),),
        explanation=hit.fix.behaviour if hit.fix is not None else "",
        origin="static",
        related_codes=rule.related,
    )
