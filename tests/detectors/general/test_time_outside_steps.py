"""GEN013 time-outside-steps: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, STEPS, nothing, train_loop

from stepscope.detectors.general.time_outside_steps import DETECTOR


def late(between: int, steps: int = STEPS) -> Job:
    """Two loops of ``steps`` steps of 100 ms with ``between`` of the user's Python between them."""
    job = train_loop(90 * MS, steps=steps)
    job.framework(at=2, dur=1)
    job.function(call_file=SCRIPT, call_line=44, call_function="main").every(
        PERIOD, steps, dur=90 * MS, start=steps * PERIOD + between
    )
    times = range(steps * PERIOD, steps * PERIOD + between, 50 * MS)
    job.samples(times, Frame(SCRIPT, "main", 48), Frame(SCRIPT, "load", 70))
    return job


FIXTURES = Fixtures(
    firing=lambda: late(4_000 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 70),),
        metrics=("phase_ratio", "phase_ns", "part at train.py:70"),
        title=("between", "load"),
        per_step=0,
        pipeline_stage="none",
        remedy="less-often",
    ),
    silent=lambda: late(100 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: late(2_500 * MS, 300),
    at=lambda: late(4_000 * MS, 300),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
