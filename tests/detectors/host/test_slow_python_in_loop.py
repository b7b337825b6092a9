"""HST001 slow-python-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, REPORT, STEPS, sampled, train_loop, unsampled

from stepscope.detectors.host.slow_python_in_loop import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: sampled(after=50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 8), ("train.py", REPORT)),
        metrics=("other_python_ratio", "samples_on_code", "samples"),
        title=("slow Python code", "after the step", "report", "50 %"),
        pipeline_stage="output-processing",
        remedy="do-it-less-often",
    ),
    silent=lambda: sampled(before=50 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: sampled(after=10 * MS - US),
    at=lambda: sampled(after=10 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_logging_now_and_then_is_none() -> None:
    """Python that runs every tenth step and is short stays below what is worth a finding."""
    job = train_loop(95 * MS)
    job.samples(
        [i * PERIOD + 97 * MS for i in range(1, STEPS)],
        Frame(SCRIPT, "main", REPORT),
        Frame(SCRIPT, "report", 8),
    )
    assert codes(job) == []
