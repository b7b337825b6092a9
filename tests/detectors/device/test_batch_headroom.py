"""GPU004 batch-headroom: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.resource_jobs import MB, gpu_steps

from stepscope.detectors.device.batch_headroom import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: gpu_steps([40] * 11, live=8_000 * MB),
    expected=Expected(
        severity="info",
        cost=0.0,
        where=(("train.py", 44),),
        metrics=("live_bytes", "total_bytes", "batch_allowed", "gpu_busy_ratio"),
        title=("batch of 72 instead of 8", "10 %", "busy 40 %"),
        introduced="hyper parameter tuning",
        pipeline_stage="forward-backward",
        remedy="larger-batch",
        basis="prior",
    ),
    silent=lambda: gpu_steps([97] * 11, live=8_000 * MB),
    not_applicable=lambda: gpu_steps([40] * 11),
    missing="live bytes of the GPU's memory",
    below=lambda: gpu_steps([40] * 11, live=36_001 * MB),
    at=lambda: gpu_steps([40] * 11, live=36_000 * MB),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
