"""GPU001 late-device-start: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import NO_GPU_SAMPLES, gpu_steps, gpu_unsampled

from stepscope.detectors.device.late_device_start import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: gpu_steps([0] * 25 + [90] * 25, late=25),
    expected=Expected(
        severity="high",
        cost=25 / 34.9,
        where=(),
        metrics=("start_ratio", "start_s", "first_step_s"),
        title=("idle for the first 25 s", "72 %"),
        introduced="initialization",
        exposed="initialization",
        pipeline_stage="none",
        remedy="load-later",
        per_step=250 * MS,
    ),
    silent=lambda: gpu_steps([0] * 5 + [90] * 25, late=5),
    not_applicable=lambda: gpu_unsampled(train_loop(80 * MS)),
    missing=NO_GPU_SAMPLES,
    below=lambda: gpu_steps([0] * 19 + [90] * 25, late=19),
    at=lambda: gpu_steps([0] * 20 + [90] * 25, late=20),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
