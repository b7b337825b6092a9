"""What captures cost stands in the report, and on every finding that rests on one."""

from __future__ import annotations

from stepscope.app.report import capture_account
from stepscope.model.report.finding import Cost, Evidence, Finding
from stepscope.model.report.overhead import Overhead
from stepscope.model.session.session import CaptureInfo, Manifest

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
    assert capture_account.failures(MANIFEST) == ["no ops capture (failed): no space"]


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
