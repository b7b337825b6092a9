"""GEN005 time-in-evaluation: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, validating

from stepscope.detectors.general.time_in_evaluation import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: validating(60 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 50),),
        metrics=("evaluation_ratio", "part at train.py:50"),
        title=("evaluations take 30 % of the step time",),
        exposed="evaluation",
        pipeline_stage="none",
        remedy="evaluate-less-often",
    ),
    silent=lambda: validating(3 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: validating(8 * MS),
    at=lambda: validating(12 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
