"""KRN003 op-on-host-in-device-step: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import DEVICE, HEAD, on_gpu, transposed

from stepscope.detectors.device.op_on_host_in_device_step import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: on_gpu([HEAD], host_op=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("host_op_ratio", "op_ns_per_step", "traced_steps"),
        title=("model/Where (Where)", "40 ms", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="op-on-device",
    ),
    silent=lambda: on_gpu([HEAD], host_op=2_000),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], host_op=9_900),
    at=lambda: on_gpu([HEAD], host_op=10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
