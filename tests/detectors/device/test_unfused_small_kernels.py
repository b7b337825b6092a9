"""KRN005 unfused-small-kernels: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import DEVICE, many_kernels, transposed

from stepscope.detectors.device.unfused_small_kernels import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: many_kernels(18),
    expected=Expected(
        severity="high",
        cost=0.30,
        where=(),
        metrics=("gap_ratio", "kernels_per_step", "kernel_ns", "fusible_ratio", "traced_steps"),
        title=("1,600 kernels", "20 us", "XLA"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="jit-compile",
        basis="modelled",
    ),
    silent=lambda: many_kernels(200, count=300),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: many_kernels(5),
    at=lambda: many_kernels(6.5),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
