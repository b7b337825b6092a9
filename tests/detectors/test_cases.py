"""Every detector finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.derive.sessions import Job
from tests.detectors.cases import CASES
from tests.detectors.fixture import Build, Fixtures

from stepscope.detectors.base import Detector, run
from stepscope.detectors.registry import ALL
from stepscope.model.report.finding import Checked, Finding

each_detector = pytest.mark.parametrize("detector", ALL, ids=lambda d: d.code)


def look(detector: Detector[Any], job: Job) -> tuple[tuple[Finding, ...], Checked]:
    """What one detector says of a job; it must not fail."""
    findings, (checked,), failures = run([detector], job.view())
    assert failures == ()
    return findings, checked


def fixtures(detector: Detector[Any]) -> Fixtures:
    """The sessions of a detector."""
    assert detector.code in CASES, f"{detector.code} has no fixtures in tests/detectors/cases.py"
    return CASES[detector.code]


def test_every_detector_has_fixtures() -> None:
    """There are fixtures for every registered detector, and for no other."""
    assert list(CASES) == [d.code for d in ALL]


@each_detector
def test_firing(detector: Detector[Any]) -> None:
    """In its own case a detector finds one thing, and says what, where, how much and what to do."""
    fixture = fixtures(detector)
    expected = fixture.expected
    findings, checked = look(detector, fixture.firing())
    assert len(findings) == 1
    found = findings[0]
    assert (found.code, found.name, checked.outcome) == (detector.code, detector.name, "found")
    assert tuple((p.file, p.line) for p in found.where) == expected.where
    assert found.cost.ratio == pytest.approx(expected.cost, abs=0.01)
    assert found.cost.low <= found.cost.ratio <= found.cost.high
    per_step = expected.cost * 100e6 if expected.per_step is None else expected.per_step
    assert found.cost.ns_per_step == pytest.approx(per_step, abs=1e6)
    assert found.cost.basis == expected.basis
    assert found.severity == expected.severity
    assert (found.introduced_stage, found.exposed_stage) == (expected.introduced, expected.exposed)
    assert found.pipeline_stage == expected.pipeline_stage
    assert tuple(e.metric for e in found.evidence) == expected.metrics
    assert [word for word in expected.title if word not in found.title] == []
    assert found.remedies[0].id == expected.remedy
    assert msgspec.json.decode(msgspec.json.encode(found), type=Finding) == found


@each_detector
def test_the_remedied_look_alike_is_silent(detector: Detector[Any]) -> None:
    """In a session that looks like its case but is none, a detector finds nothing and says clear."""
    findings, checked = look(detector, fixtures(detector).silent())
    assert findings == ()
    assert checked.outcome == "clear"


@each_detector
def test_what_cannot_be_looked_at_is_not_applicable(detector: Detector[Any]) -> None:
    """Without its signal a detector is not applicable, names the signal and says how to get it."""
    findings, checked = look(detector, fixtures(detector).not_applicable())
    assert findings == ()
    assert checked.outcome == "not-applicable"
    assert fixtures(detector).missing in checked.missing
    assert checked.hint


@each_detector
@pytest.mark.parametrize("side", ["below", "at"])
def test_threshold(detector: Detector[Any], side: str) -> None:
    """Just below its threshold a detector is silent, at it or next to it on the other side it finds its case."""
    build: Build = getattr(fixtures(detector), side)
    findings, _ = look(detector, build())
    assert [f.code for f in findings] == ([detector.code] if side == "at" else [])
