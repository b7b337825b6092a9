"""INP005 unbatched-map: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import TRACE, fed, untraced

from stepscope.detectors.input.unbatched_map import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: fed(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * 0.8 * 7 / 8,
        where=(),
        metrics=("input_wait_ratio", "around_ratio", "calls_per_batch", "call_ns", "traced_steps"),
        title=("maps records one by one", "8 calls", "80 %", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="batch-before-map",
        basis="modelled",
    ),
    silent=lambda: fed(60_000, work=0.9),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: fed(60_000, work=0.52),
    at=lambda: fed(60_000, work=0.48),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
