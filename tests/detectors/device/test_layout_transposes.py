"""LAY001 layout-transposes: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import TRACE, transposed, untraced

from stepscope.detectors.device.layout_transposes import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: transposed(40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("transpose_ratio", "transposes_per_step", "traced_steps"),
        title=("layout transposes take 40 % of the step, 1 a step",),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="one-layout",
    ),
    silent=lambda: transposed(40_000, name="attention/transpose"),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: transposed(4_900),
    at=lambda: transposed(5_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
