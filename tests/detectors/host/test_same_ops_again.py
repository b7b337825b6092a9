"""HST015 same-ops-again: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, POOL, US
from tests.detectors.asking import find
from tests.detectors.eager_jobs import again
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, TIDY, nothing

from stepscope.detectors.host.same_ops_again import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: again(350 * MS),
    expected=Expected(
        severity="high",
        cost=0.7,
        where=(("train.py", TIDY),),
        metrics=("again_ratio", "again", "runs", "looks"),
        title=("computed again from the same inputs", "encoder (Conv2D, Relu); 36 of 40", "70 %"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="keep-the-result",
    ),
    silent=lambda: again(0),
    not_applicable=nothing,
    missing="steps",
    below=lambda: again(50 * MS - US),
    at=lambda: again(50 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("fresh", "severity"), [(1, "info"), (2, "high")])
def test_a_loop_that_does_nothing_new_is_information(fresh: int, severity: str) -> None:
    """A benchmark gives a model the same batch in each turn: nothing of it could be kept."""
    (found,) = (f for f in find(again(350 * MS, fresh=fresh)) if f.code == "HST015")
    assert found.severity == severity


@pytest.mark.parametrize(("thread", "at"), [(POOL, 20 * PERIOD), (1, 200 * PERIOD)], ids=["thread", "time"])
def test_looks_elsewhere_do_not_count(thread: int, at: int) -> None:
    """A look at another thread, or after the steps, says nothing of the steps."""
    assert "HST015" not in [f.code for f in find(again(350 * MS, thread=thread, at=at))]


def test_a_known_part_of_a_layer_that_draws_is_none() -> None:
    """Dropout scales its input, which is known, before it draws: nothing of the layer could be kept."""
    assert "HST015" not in [f.code for f in find(again(350 * MS, drawn=True))]
