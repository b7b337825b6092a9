"""NET002 network-input-at-capacity: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import HANDOVER, train_loop
from tests.detectors.resource_jobs import MISSING, over_network

from stepscope.detectors.system.network_input_at_capacity import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: over_network(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 70),),
        metrics=(
            "network_in",
            "input_wait_ratio",
            "bytes_per_sample",
            "samples_per_s_allowed",
            "wire_busy_ratio",
            "unread_ratio",
            "own_ratio",
        ),
        title=("network is at its limit", "5.00 MB/s", "62.5 kB a sample", "80.0 samples/s", "60 %"),
        introduced="data preparation",
        pipeline_stage="raw-input",
        remedy="fewer-bytes",
    ),
    silent=lambda: over_network(60 * MS, unread=130_000),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: over_network(15 * MS + HANDOVER - US),
    at=lambda: over_network(15 * MS + HANDOVER + US),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
