"""GPU002 device-full: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import NO_GPU_SAMPLES, gpu_steps, gpu_unsampled

from stepscope.detectors.device.device_full import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: gpu_steps([98] * 11),
    expected=Expected(
        severity="info",
        cost=0.0,
        where=(("train.py", 44),),
        metrics=("gpu_busy_ratio", "least_busy_ratio"),
        title=("busy 98 %", "only its ops"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="improve-ops",
    ),
    silent=lambda: gpu_steps([98, 98, 98, 60, 98, 98, 98, 98, 98, 98, 98]),
    not_applicable=lambda: gpu_unsampled(train_loop(80 * MS)),
    missing=NO_GPU_SAMPLES,
    below=lambda: gpu_steps([94] * 11),
    at=lambda: gpu_steps([95] * 11),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
