"""GEN009 time-in-host-sync: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, synced

from stepscope.detectors.general.time_in_host_sync import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: synced(30 * MS, 10 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 45),),
        metrics=("host_sync_ratio", "part at train.py:45"),
        title=("waits for tensors: 30 % of the step time", "main"),
        exposed="prediction",
        pipeline_stage="device-to-host",
        remedy="read-less-often",
    ),
    silent=lambda: synced(MS, 10 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: synced(4 * MS, 10 * MS),
    at=lambda: synced(6 * MS, 10 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
