"""What captures cost stands in the report, and on every finding that rests on one."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import Job
from tests.detectors import traced_jobs

from stepscope.diagnosis import capture_account
from stepscope.diagnosis.analyze import report_of
from stepscope.model.report.overhead import Overhead
from stepscope.model.session.session import CaptureInfo, Manifest
from stepscope.tables.findings import Cost, Diagnostic, Evidence, Finding

MS = 1_000_000
DONE = CaptureInfo(
    id="a", outcome="done", steps=10, ratio=0.02, low=-0.01, high=0.05, cost_ns=30 * MS, title="Keras fit"
)
FAILED = CaptureInfo(id="b", outcome="failed", text="no space", cost_ns=20 * MS)
MANIFEST = Manifest(ended_ns=10_000 * MS, captures=(DONE, FAILED))


def finding(*refs: str) -> Finding:
    """A finding whose evidence refers to these."""
    return Finding(
        code="INP001",
        name="x",
        title="x",
        severity="high",
        confidence=1.0,
        symptom="unknown",
        cause="unknown",
        introduced_stage="unknown",
        exposed_stage="unknown",
        pipeline_stage="none",
        evidence=(Evidence(metric="wait", value=0.5, unit="ratio", refs=refs),),
        cost=Cost(ratio=0.5, low=0.4, high=0.6),
    )


def test_the_account_holds_every_capture() -> None:
    """Those that were made are listed; those that were not cost their share and say why."""
    overhead = capture_account.with_captures(Overhead(ratio=0.0, low=0.0, high=0.0), MANIFEST)
    assert [(c.id, c.steps, c.ratio, c.title) for c in overhead.captures] == [("a", 10, 0.02, "Keras fit")]
    assert overhead.captures_ratio == 0.005
    assert capture_account.failures(MANIFEST) == ["no op trace: no space"]


def test_a_finding_carries_the_cost_of_its_captures() -> None:
    """Once for each capture that it rests on; other findings are left alone."""
    plain, resting = capture_account.annotated((finding("span:1"), finding("capture:a", "op:3")), MANIFEST)
    assert plain == finding("span:1")
    assert [(e.metric, e.value) for e in resting.evidence[1:]] == [
        ("capture_cost_ns", 30 * MS),
        ("capture_slowdown_ratio", 0.02),
    ]


def test_without_a_ratio_only_the_cost_is_told() -> None:
    """Too few steps to compare."""
    (resting,) = capture_account.annotated((finding("capture:b"),), MANIFEST)
    assert [e.metric for e in resting.evidence] == ["wait", "capture_cost_ns"]


@pytest.mark.parametrize(
    ("job", "said"),
    [(traced_jobs.untraced(), True), (traced_jobs.fed(0.5), False)],
    ids=["no-trace", "traced-steps"],
)
def test_no_trace_is_said_only_where_the_report_shows_none(job: Job, *, said: bool) -> None:
    """Captures were too dear; a trace that came another way shows steps all the same."""
    text = f"{capture_account.UNMADE}: tracing one step would cost about 9 s"
    session = job.session()
    manifest = msgspec.structs.replace(session.manifest, diagnostics=(Diagnostic(code="DX118", text=text),))
    report = report_of(msgspec.structs.replace(session, manifest=manifest))
    assert (report.traced is None) == said
    assert ("DX118" in [one.code for one in report.diagnostics]) == said


def test_a_trace_without_a_whole_step_is_not_denied() -> None:
    """What was too dear is said of whole steps then, beside the trace of none."""
    traced = report_of(traced_jobs.fed(0.5).session()).traced
    assert traced is not None
    note = Diagnostic(code="DX118", text=f"{capture_account.UNMADE}: too dear")
    (said,) = capture_account.noted([note], msgspec.structs.replace(traced, count=0))
    assert said.text == "no automatic op trace of whole steps: too dear"
