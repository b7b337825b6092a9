"""GEN011 time-in-framework-loop: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job, S
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import PERIOD, keras_fit, nothing

from stepscope.detectors.general.time_in_framework_loop import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: keras_fit(40 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 50),),
        metrics=("framework_ratio", "step_ns"),
        title=("Keras' own loop takes 60 % of the step time",),
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


def test_a_loop_that_stands_still_in_few_steps() -> None:
    """It is no cost of each call: more steps in one call would not change it."""
    job = Job()
    job.loop("fit", line=50).at(0, 20 * S)
    train = job.execution()
    for i in range(100):
        train.at(i * PERIOD + 2 * S * sum(i > at for at in (30, 60)), PERIOD - MS, arg=1)
    (found,), _ = look(DETECTOR, job)
    assert found.title.startswith("Keras' own loop stalls: ")
    assert [remedy.id for remedy in found.remedies] == ["look-at-those-steps"]
