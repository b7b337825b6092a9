"""CFG004 small-validation-batch: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, validating

from stepscope.detectors.config.small_validation_batch import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: validating(80 * MS),
    expected=Expected(
        severity="high",
        cost=0.32,
        where=(("train.py", 50),),
        metrics=("validation_ratio", "cost_ratio", "validation_batch", "training_batch"),
        title=("validation on batches of 1", "40 %", "5.12x", "batches of 64"),
        introduced="evaluation",
        pipeline_stage="none",
        remedy="larger-validation-batch",
        basis="modelled",
    ),
    silent=lambda: validating(80 * MS, size=64),
    not_applicable=nothing,
    missing="steps",
    below=lambda: validating(31 * MS),
    at=lambda: validating(32 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
