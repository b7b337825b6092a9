"""KRN001 kernel-launch-bound: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import DEVICE, HEAD, on_gpu, transposed

from stepscope.detectors.device.kernel_launch_bound import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: on_gpu([HEAD], launching=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("launch_idle_ratio", "kernels_per_step", "kernel_ns", "launch_ns", "traced_steps"),
        title=("kernel launch", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="more-work-per-launch",
        basis="modelled",
    ),
    silent=lambda: on_gpu([HEAD]),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], launching=24_500),
    at=lambda: on_gpu([HEAD], launching=25_500),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
