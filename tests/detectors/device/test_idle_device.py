"""GPU003 idle-device: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, Job
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import MB, NO_GPU_SAMPLES, gpu_steps, gpu_unsampled

from stepscope.detectors.device.idle_device import DETECTOR
from stepscope.diagnosis.analyze import report_of
from stepscope.model.report.report import Report
from stepscope.report import html, markdown, text, verdict

FIXTURES = Fixtures(
    firing=lambda: gpu_steps([0] * 11, reserved=300 * MB, own=0),
    expected=Expected(
        severity="ask",
        cost=0.0,
        where=(("train.py", 44),),
        metrics=("gpu_busy_ratio", "reserved_bytes", "compute_ratio"),
        title=("does not use the GPU", "80 %"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="use-gpu",
        basis="unknown",
    ),
    silent=lambda: gpu_steps([0] * 11),
    not_applicable=lambda: gpu_unsampled(train_loop(80 * MS)),
    missing=NO_GPU_SAMPLES,
    below=lambda: gpu_steps([2] * 11, reserved=300 * MB, own=0),
    at=lambda: gpu_steps([1] * 11, reserved=300 * MB, own=0),
    edges={
        "used_bytes": Edge(
            below=lambda: gpu_steps([0] * 11, own=1_000 * MB), at=lambda: gpu_steps([0] * 11, own=1_000 * MB - 1)
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def reported(job: Job) -> Report:
    """The whole report of a job."""
    return report_of(job.session())


def unused() -> Job:
    """A job that computes on the CPU for 80 % of its step, beside an idle GPU."""
    return gpu_steps([0] * 11, reserved=300 * MB, own=0)


def test_the_head_asks_about_it() -> None:
    """Text, Markdown and page say that the GPU is not used, where, at most how much, and what decides it."""
    report = reported(unused())
    for shown in (text.render(report), markdown.render(report, sources={}), html.render(report, sources={})):
        assert verdict.NOTHING not in shown.lower()
        assert "does not use the GPU" in shown
        assert "cost unknown, at most 80 % of the step" in shown.replace("Cost unknown", "cost unknown")
        assert "stepscope doctor" in shown
        assert "train.py:44" in shown
        assert "x</b> as fast" not in shown


def test_its_cost_is_unknown_and_not_nothing() -> None:
    """The interval goes from nothing to all that is computing; no share is claimed."""
    found = next(f for f in reported(unused()).findings if f.code == "GPU003")
    assert (found.severity, found.cost.basis) == ("ask", "unknown")
    assert (found.cost.ratio, found.cost.low) == (0.0, 0.0)
    assert found.cost.high == pytest.approx(0.8, abs=0.01)


def test_it_is_shown_below_many_findings() -> None:
    """However many findings have a cost, the question is not among those that are only counted."""
    report = reported(unused())
    asked = report.findings[0]
    costly = replace(asked, severity="low")
    many = replace(report, findings=(*[costly] * 7, asked))
    shown = text.render(many)
    assert "6 ask" in shown
    assert "+ 2 more" in shown


def test_a_used_gpu_is_not_asked_about() -> None:
    """A job that computes on the device, or holds its memory, is not asked."""
    assert not [f for f in reported(gpu_steps([50] * 11)).findings if f.severity == "ask"]


@pytest.mark.parametrize(("busy", "said"), [(12, "GPU busy 12 %"), (97, "GPU busy 97 %")])
def test_the_head_says_how_busy_the_gpu_is(busy: int, said: str) -> None:
    """Whatever the detectors find: the share of the steady steps, in text, Markdown and page; replayed readings."""
    report = reported(gpu_steps([busy] * 11))
    assert report.session.gpu_busy_ratio == pytest.approx(busy / 100)
    assert said in text.render(report).splitlines()[0]
    assert said in markdown.render(report, sources={})
    assert f'<dt>GPU busy</dt><dd class="value">{busy} ' in html.render(report, sources={})
