"""KRN002 host-to-device-copy-bound: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import DEVICE, HEAD, on_gpu, transposed

from stepscope.detectors.device.host_to_device_copy_bound import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: on_gpu([HEAD], copy=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("copy_ratio", "bytes_per_step", "bytes_per_s", "traced_steps"),
        title=("copies from host to device", "40 %"),
        introduced="data preparation",
        pipeline_stage="host-to-device",
        remedy="prefetch-to-device",
    ),
    silent=lambda: on_gpu([("gemm_kernel", 0.0, 10.0, 60_000.0)], copy=2_000),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], copy=9_900),
    at=lambda: on_gpu([HEAD], copy=10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
