"""HST014 gradients-one-by-one: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import asking, unsampled

from stepscope.detectors.host.gradients_one_by_one import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: asking(90),
    expected=Expected(
        severity="high",
        cost=0.85 * 90 / 98,
        where=(("train.py", 2),),
        metrics=("gradient_ratio", "saved_ratio", "samples"),
        title=("one variable at a time", "92 %"),
        pipeline_stage="forward-backward",
        remedy="gradients-in-one-call",
        basis="modelled",
    ),
    silent=lambda: asking(90, each="variables"),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: asking(19),
    at=lambda: asking(20),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
