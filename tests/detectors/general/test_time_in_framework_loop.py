"""GEN011 time-in-framework-loop: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import keras_fit, nothing

from stepscope.detectors.general.time_in_framework_loop import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: keras_fit(40 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 50),),
        metrics=("framework_ratio", "step_ns"),
        title=("Keras' own loop takes 60 % of the steps",),
        pipeline_stage="output-processing",
        remedy="steps-per-execution",
    ),
    silent=lambda: keras_fit(99 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: keras_fit(96 * MS),
    at=lambda: keras_fit(94 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
