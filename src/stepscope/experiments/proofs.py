"""The trials that measure a finding's remedy without a change of the code: detector -> interventions.

A trial is written as ``whatif --try`` takes it: NAME or NAME:ARGUMENT (``experiments.interventions``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.model.report.finding import Finding

STUB, GRAPH_FUNCTION = "stub", "graph-function"
"""Interventions on the function at a finding's place: their argument is the place."""
ONE_CALLBACK = "without-callback"
"""Intervention that leaves one callback out: its argument is the class."""
OF_CODE: dict[str, tuple[str, ...]] = {
    "CFG002": ("batch:4", "steps-per-execution:10"),
    "CFG003": ("threads-default", "private-threads"),
    "CFG004": ("no-validation",),
    "CFG005": ("checks-off",),
    "GRF001": ("functions-reused", "reduce-retracing"),
    "GRF003": ("graph",),
    "GRF006": (STUB,),
    "GRF010": ("xla-off",),
    "GRF018": ("no-metrics",),
    "HST001": (STUB,),
    "HST002": (GRAPH_FUNCTION,),
    "HST004": (ONE_CALLBACK,),
    "HST005": (ONE_CALLBACK,),
    "HST006": ("no-checkpoints",),
    "HST010": ("no-summaries",),
    "INP001": ("parallel-map", "cache-input"),
    "INP002": (STUB, "parallel-map"),
    "INP003": (STUB, "compute-only"),
    "INP004": (STUB, "compute-only"),
    "INP006": ("parallel-map",),
    "INP007": ("parallel-map", "compute-only"),
    "TRD001": (STUB,),
    "GEN014": (STUB,),
    "GEN002": ("steps-per-execution:10", "batch:4"),
}
"""Detectors not listed have no trial."""
OF_REMEDY: dict[str, tuple[str, ...]] = {
    "more-cores": ("cache-input", "compute-only"),
    "summaries-less-often": ("no-summaries",),
}
"""Remedies whose trial is another than that of their detector."""


def trials_of(finding: Finding) -> tuple[str, ...]:
    """The trials of a finding, the most telling first; () if there are none."""
    first = finding.remedies[0].id if finding.remedies else ""
    templates = OF_REMEDY.get(first) or OF_CODE.get(finding.code, ())
    found = [filled(template, finding) for template in templates]
    return tuple(trial for trial in found if trial)


def filled(template: str, finding: Finding) -> str:
    """A trial with the argument that a finding gives; "" if it gives none."""
    place = finding.where[0] if finding.where else None
    if template in {STUB, GRAPH_FUNCTION}:
        return f"{template}:{place.file}:{place.line}" if place is not None and place.file else ""
    if template == ONE_CALLBACK:
        owner = (place.function or "").rpartition(".")[0].rpartition(".")[2] if place is not None else ""
        return f"{ONE_CALLBACK}:{owner}" if owner else "no-callbacks"
    return template
