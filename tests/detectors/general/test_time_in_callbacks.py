"""GEN004 time-in-callbacks: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import called_back, nothing

from stepscope.detectors.general.time_in_callbacks import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: called_back(30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        basis="modelled",
        where=(("train.py", 30),),
        metrics=("callbacks_ratio", "part at train.py:30"),
        title=("callbacks take 30 % of the steps", "Plotter"),
        pipeline_stage="output-processing",
        remedy="callback-less-often",
    ),
    silent=lambda: called_back(MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: called_back(4 * MS),
    at=lambda: called_back(6 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
