"""CFG005 debugging-left-on: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.asking import asked, asked_of, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import NODES, checked, checked_tables, debug, graph_only
from tests.detectors.jobs import train_loop

from stepscope.detectors.config.debugging_left_on import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: checked(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 3),),
        metrics=("checking_ratio", "handing_out_ratio", "checking_ops", "traced_steps"),
        title=("enable_check_numerics is on", "60 %", "2 ops"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="debugging-off",
    ),
    silent=lambda: checked(60_000, checks=False),
    not_applicable=lambda: debug(train_loop(20 * MS), on=True),
    missing=NODES,
    below=lambda: checked(9_900),
    at=lambda: checked(10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_debugging_mode_that_is_off_again_is_none() -> None:
    """The mode was turned off, or nobody turned it on: what checks numbers then was asked for."""
    assert codes(checked(60_000, off=True)) == []


def test_checks_whose_time_nobody_knows_are_asked_about() -> None:
    """Without an op trace the graph shows the checks: one is wanted."""
    assert asked_of(debug(graph_only(checked_tables()), on=True)) == ["CFG005"]
    assert asked(checked_tables()) == []
