"""NET001 choppy-network-input: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import MISSING, in_turns

from stepscope.detectors.system.choppy_network_input import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: in_turns(6),
    expected=Expected(
        severity="high",
        cost=2.85 / 8,
        where=(("train.py", 70),),
        metrics=(
            "overlap_ratio",
            "input_wait_ratio",
            "wire_while_waiting_ratio",
            "wire_while_working_ratio",
            "network_in",
        ),
        title=("in bursts", "network is idle 62 %"),
        introduced="data preparation",
        pipeline_stage="raw-input",
        remedy="fetch-ahead",
    ),
    silent=lambda: in_turns(6, contrast=False),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: in_turns(1),
    at=lambda: in_turns(2),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
