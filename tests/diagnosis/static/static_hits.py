"""Static findings to be joined with those of a run."""

from __future__ import annotations

from tests.derive.sessions import SCRIPT, Frame, Job
from tests.detectors.jobs import MAKE

from stepscope.causes.host.line_heat import HotLines
from stepscope.check.hits import CheckSeverity, FixPlan, Hit, Span
from stepscope.check.rule import Rule
from stepscope.check.run import findings
from stepscope.diagnosis.static.join import JoinedFindings, join
from stepscope.diagnosis.static.static_check import StaticHit
from stepscope.tables.findings import Cause, Checked, Finding, PipelineStage, Symptom

MAIN = Frame(SCRIPT, "main", MAKE)
SLOW = 4
"""Line of ``make_batch`` that the samples fall on."""


def hit(
    line: int = SLOW,
    *,
    end: int = 0,
    path: str = SCRIPT,
    function: str = "make_batch",
    fix: FixPlan | None = None,
    code: str = "VEC009",
    severity: CheckSeverity = "warning",
    speedup: float = 10.0,
    related: tuple[str, ...] = ("HST001",),
    cause: Cause = "API: not using batch API",
    pipeline_stage: PipelineStage = "output-processing",
    symptom: Symptom = "Time: slow execution time",
) -> StaticHit:
    """A hit in ``make_batch``; nine tenths of its pattern's time went where it was measured."""
    made = Rule(
        code=code,
        name="row-by-row",
        severity=severity,
        symptom=symptom,
        cause=cause,
        introduced_stage="data preparation",
        exposed_stage="training",
        pipeline_stage=pipeline_stage,
        speedup=speedup,
        remedy="work on all rows at once",
        related=related,
    )
    span = Span(
        path=path,
        line=line,
        column=5,
        end_line=end or line,
        end_column=20,
        function=function,
    )
    found = Hit(
        code=made.code, span=span, message="rows are read one by one", confidence=0.9, severity=made.severity, fix=fix
    )
    return StaticHit(
        rule=made, hit=found, finding=findings.finding(made, found), edit="stepscope check --diff x" if fix else None
    )


def joined(
    job: Job, *static: StaticHit, run: tuple[Finding, ...] = (), checked: tuple[Checked, ...] = ()
) -> JoinedFindings:
    """What becomes of findings."""
    view = job.view()
    return join(view, run, checked, static, HotLines(view))
