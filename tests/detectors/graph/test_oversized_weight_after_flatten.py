"""GRF011 oversized-weight-after-flatten: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, flattened
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.oversized_weight_after_flatten import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: flattened(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("weight_ratio", "weight_elements", "positions", "traced_steps"),
        title=("4,096 positions", "16,777,216 weights", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="pool-before-dense",
    ),
    silent=lambda: flattened(60_000, maps=False),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: flattened(24_800),
    at=lambda: flattened(25_200),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
