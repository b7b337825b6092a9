"""GEN003 time-in-input-wait: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import nothing, pulled

from stepscope.detectors.general.time_in_input_wait import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: pulled(30 * MS),
    expected=Expected(
        severity="high",
        cost=0.29,
        basis="modelled",
        where=(("train.py", 15), ("train.py", 71)),
        metrics=("input_wait_ratio", "part at train.py:15"),
        title=("wait for input", "30 % of the step time", "decode"),
        introduced="data preparation",
        exposed="prediction",
        pipeline_stage="preprocessing",
        remedy="parallel-input",
    ),
    silent=lambda: pulled(2 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(4 * MS),
    at=lambda: pulled(6 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("wait", "severity"), [(19, "info"), (23, "medium")])
def test_a_fifth_of_the_steps_is_more_than_information(wait: int, severity: str) -> None:
    """Silence over it would be one over time that is lost."""
    (found,), _ = look(DETECTOR, pulled(wait * MS))
    assert found.severity == severity
