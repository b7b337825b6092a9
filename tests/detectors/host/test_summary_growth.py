"""HST010 summary-growth: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import REPORT, train_loop
from tests.detectors.trend_jobs import MB, summarised

from stepscope.detectors.host.summary_growth import DETECTOR

GIB_AN_HOUR = (1 << 30) / 36_000
"""Per step: ten of them are a second."""
FIXTURES = Fixtures(
    firing=lambda: summarised(MB, dur=4 * MS),
    expected=Expected(
        severity="low",
        cost=0.04,
        where=(("train.py", REPORT),),
        metrics=("bytes_per_hour", "bytes_per_step", "summary_calls_per_step", "summary_ratio"),
        title=("summaries fill the disk", "1 MiB a step", "an hour"),
        pipeline_stage="storage",
        remedy="summaries-less-often",
    ),
    silent=lambda: summarised(1000, saved=200 * MB),
    not_applicable=lambda: train_loop(80 * MS),
    missing="samples of the process's memory",
    below=lambda: summarised(int(GIB_AN_HOUR) - 1),
    at=lambda: summarised(int(GIB_AN_HOUR) + 1),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_summaries_that_take_time_are_one_finding() -> None:
    """Summaries that block the steps and fill the disk are told once, by what they cost."""
    assert codes(summarised(MB, dur=10 * MS)) == ["HST006"]
