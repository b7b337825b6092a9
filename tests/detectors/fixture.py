"""What the fixtures of a detector are, and what is claimed of each of them.

All sessions are written by hand: what costs how much is chosen there, so what a detector says of it can be asserted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec
import pytest
from tests.derive.sessions import Job

from stepscope.detectors.base import Detector, run
from stepscope.tables.findings import Basis, Checked, Finding, PipelineStage, Severity, Stage

Build = Callable[[], Job]
AnyDetector = Detector[Any]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a detector must say of its firing session. ``where`` in order; ``metrics``: evidence, complete."""

    severity: Severity
    cost: float
    where: tuple[tuple[str, int], ...]
    metrics: tuple[str, ...]
    title: tuple[str, ...]
    """Words of the title."""
    introduced: Stage = "training"
    exposed: Stage = "training"
    pipeline_stage: PipelineStage
    remedy: str
    """The id of the first remedy."""
    basis: Basis = "measured"
    per_step: int | None = None
    """Cost of the mean step, where it is not the usual step's share."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Two sessions on both sides of one number of a detector's ``Params``, which differ by next to nothing."""

    below: Build
    at: Build
    shows: str = ""
    """What is said ``at`` the number alone: the id of a remedy, a severity or an outcome; "" for the finding itself."""


@dataclass(frozen=True, kw_only=True)
class Fixtures:
    """The sessions of one detector. ``below`` is silent, ``at`` is found, and they differ by next to nothing."""

    firing: Build
    expected: Expected
    silent: Build
    not_applicable: Build
    missing: str
    below: Build
    at: Build
    edges: Mapping[str, Edge] = field(default_factory=dict)
    """Edges of other numbers than that of ``below`` and ``at``, by their names in ``Params``."""


Claim = Callable[[AnyDetector, Fixtures], None]


def look(detector: AnyDetector, job: Job) -> tuple[tuple[Finding, ...], Checked]:
    """What one detector says of a job; it must not fail."""
    findings, (checked,), failures = run([detector], job.view())
    assert failures == ()
    return findings, checked


def firing(detector: AnyDetector, fixtures: Fixtures) -> None:
    """In its own case a detector finds one thing, and says what, where, how much and what to do."""
    expected = fixtures.expected
    findings, checked = look(detector, fixtures.firing())
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


def silent(detector: AnyDetector, fixtures: Fixtures) -> None:
    """In a session that looks like its case but is none, a detector finds nothing and says clear."""
    findings, checked = look(detector, fixtures.silent())
    assert findings == ()
    assert checked.outcome == "clear"


def not_applicable(detector: AnyDetector, fixtures: Fixtures) -> None:
    """Without its signal a detector is not applicable, names the signal and says how to get it."""
    job = fixtures.not_applicable()
    job.host = msgspec.structs.replace(job.host, gpus=1)  # without one, detectors of devices do not apply at all
    findings, checked = look(detector, job)
    assert findings == ()
    assert checked.outcome == "not-applicable"
    assert fixtures.missing in checked.missing
    assert checked.hint


def below_threshold(detector: AnyDetector, fixtures: Fixtures) -> None:
    """Just below its threshold a detector is silent."""
    assert look(detector, fixtures.below())[0] == ()


def at_threshold(detector: AnyDetector, fixtures: Fixtures) -> None:
    """At its threshold, or next to it on the other side, a detector finds its case."""
    findings, _ = look(detector, fixtures.at())
    assert [f.code for f in findings] == [detector.code]


def edges(detector: AnyDetector, fixtures: Fixtures) -> None:
    """Each further number that decides does so where it stands."""
    for name, edge in fixtures.edges.items():
        assert isinstance(attrgetter(name)(detector.params), int | float)
        shown = edge.shows or detector.code
        assert [shown in _said(detector, build()) for build in (edge.below, edge.at)] == [False, True], name


def _said(detector: AnyDetector, job: Job) -> set[str]:
    """Codes, severities and remedies of what a detector finds in a job, and its outcome."""
    findings, checked = look(detector, job)
    remedies = {remedy.id for found in findings for remedy in found.remedies}
    return {checked.outcome, *remedies, *(f.code for f in findings), *(f.severity for f in findings)}


CLAIMS: tuple[Claim, ...] = (firing, silent, not_applicable, below_threshold, at_threshold, edges)
"""Each detector's ``test_fixtures`` makes all of them."""
