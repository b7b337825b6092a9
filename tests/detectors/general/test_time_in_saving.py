"""GEN008 time-in-saving: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, saving

from stepscope.detectors.general.time_in_saving import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: saving(60 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 60),),
        metrics=("saving_ratio", "part at train.py:60"),
        title=("saving takes 30 % of the step time",),
        exposed="prediction",
        pipeline_stage="storage",
        remedy="save-less-often",
    ),
    silent=lambda: saving(4 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: saving(9 * MS),
    at=lambda: saving(12 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
