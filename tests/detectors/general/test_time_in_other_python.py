"""GEN012 time-in-other-python: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, sampled

from stepscope.detectors.general.time_in_other_python import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: sampled(after=30 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 8), ("train.py", 45)),
        metrics=("other_python_ratio", "part at train.py:8"),
        title=("Python between the steps takes 30 % of the steps", "in report"),
        exposed="prediction",
        pipeline_stage="output-processing",
        remedy="vectorise",
    ),
    silent=lambda: sampled(after=MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: sampled(after=4 * MS),
    at=lambda: sampled(after=6 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
