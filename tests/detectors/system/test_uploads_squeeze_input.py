"""NET003 uploads-squeeze-input: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import MISSING, uploading

from stepscope.detectors.system.uploads_squeeze_input import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: uploading(5, 0.3),
    expected=Expected(
        severity="high",
        cost=0.2995,
        where=(),
        metrics=(
            "wait_while_uploading_ratio",
            "wait_otherwise_ratio",
            "input_while_uploading",
            "input_otherwise",
            "uploading_ratio",
            "network_out",
        ),
        title=("uploads slow down the input", "4.00 MB/s go out", "5.00 to 1.50 MB/s"),
        pipeline_stage="raw-input",
        remedy="upload-later",
    ),
    silent=lambda: uploading(5, 1.0, wait=MS // 10),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: uploading(5, 0.81),
    at=lambda: uploading(5, 0.79),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
