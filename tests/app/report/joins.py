"""Hits, findings and jobs to join."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import MAKE, PERIOD, STEPS, train_loop

from stepscope.app.report.join import Joined, join
from stepscope.app.report.static_check import StaticHit
from stepscope.causes.host.line_heat import HotLines
from stepscope.checker.hits import CheckSeverity, FixPlan, FixSafety, Hit, Span
from stepscope.checker.rule import Rule
from stepscope.checker.run import findings
from stepscope.model.report.finding import Cause, Checked, Cost, Finding, PipelineStage, Place, Remedy, Symptom

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


def plan(safety: FixSafety = "safe") -> FixPlan:
    """An edit."""
    return FixPlan(
        action="add-keyword",
        title="Add axis=0",
        safety=safety,
        behaviour="Results keep their order.",
        spans=(),
    )


def found(code: str = "HST001", *places: Place, ratio: float = 0.4) -> Finding:
    """A detector's finding."""
    return Finding(
        code=code,
        name="slow",
        title="make_batch takes 40 ms",
        severity="high",
        confidence=0.9,
        symptom="Time: slow execution time",
        cause="Python: interpreter overhead",
        introduced_stage="training",
        exposed_stage="training",
        pipeline_stage="preprocessing",
        where=places,
        cost=Cost(ratio=ratio, low=ratio, high=ratio),
        remedies=(Remedy(id="own", text="make it faster"),),
        explanation="It is Python.",
    )


def place(line: int, end: int | None = None, file: str = "train.py") -> Place:
    """A place as reports name it."""
    return Place(file=file, line=line, end_line=end, function="make_batch")


def hot(share: float = 0.4, line: int = SLOW) -> Job:
    """A loop whose steps spend this share on a line of ``make_batch``, the rest in ``main``."""
    job = train_loop(20 * MS)
    for dur, frames in ((share, (MAIN, Frame(SCRIPT, "make_batch", line))), (1 - share, (MAIN,))):
        job.samples([i * PERIOD + 50 * MS for i in range(STEPS)], *frames, dur=round(dur * 100) * MS)
    return job


def joined(job: Job, *static: StaticHit, run: tuple[Finding, ...] = (), checked: tuple[Checked, ...] = ()) -> Joined:
    """What becomes of findings."""
    view = job.view()
    return join(view, run, checked, static, HotLines(view))
