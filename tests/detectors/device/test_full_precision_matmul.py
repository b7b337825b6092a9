"""KRN004 full-precision-matmul: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import DEVICE, on_gpu, transposed

from stepscope.detectors.device.full_precision_matmul import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: on_gpu([("volta_sgemm_128x64_nn", 0.0, 10.0, 60_000.0)]),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(),
        metrics=("full_precision_ratio", "tensor_core_ratio", "capability", "traced_steps"),
        title=("32 bits", "60 %", "mixed precision"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="mixed-precision",
        basis="modelled",
    ),
    silent=lambda: on_gpu([("volta_h884gemm_128x64_nn", 0.0, 10.0, 60_000.0)]),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([("volta_sgemm_128x64_nn", 0.0, 10.0, 29_900.0)]),
    at=lambda: on_gpu([("volta_sgemm_128x64_nn", 0.0, 10.0, 30_100.0)]),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
