"""CFG006 profiler-left-on: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, S
from tests.detectors.asking import look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import MAIN_CALL, PERIOD, nothing
from tests.detectors.trend_jobs import profiling

from stepscope.detectors.config.profiler_left_on import DETECTOR
from stepscope.model.log.events import UserProfiler

FIXTURES = Fixtures(
    firing=lambda: profiling(150 * MS),
    expected=Expected(
        severity="medium",
        cost=0.2,
        where=(("train.py", 12),),
        metrics=("recorded_ratio", "recorded_steps", "slower_ratio", "stop_ns"),
        title=("own profiler", "59 steps", "60 %", "50 % longer"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="profile-some-steps",
        per_step=25 * MS,
    ),
    silent=lambda: profiling(150 * MS, steps=50),
    not_applicable=nothing,
    missing="steps",
    below=lambda: profiling(106 * MS),
    at=lambda: profiling(107 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_recorded_steps_that_are_no_slower() -> None:
    """Steps that are by chance faster while they are recorded are no negative slowdown; stopping the profiler costs."""
    job = profiling(97 * MS, stopped=False)
    job.function(**MAIN_CALL).every(PERIOD, 60, dur=PERIOD // 2, start=60 * 97 * MS)
    job.event(UserProfiler(at=60 * 97 * MS, action="stop", dur_ns=3 * S))
    (found,) = look(job)[0]
    assert "recorded steps take no longer; stopping it took 3 s" in found.title
