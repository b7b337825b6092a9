"""GEN006 time-in-building: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, reloading

from stepscope.detectors.general.time_in_building import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: reloading(40 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 33),),
        metrics=("building_ratio", "part at train.py:33"),
        title=("made within the steps: 40 % of the step time", "handle"),
        introduced="model building",
        exposed="prediction",
        pipeline_stage="none",
        remedy="build-once",
    ),
    silent=lambda: reloading(MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: reloading(4 * MS),
    at=lambda: reloading(6 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
