"""DST004 waits-in-exchange: its fixtures, and when it is only information."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import alone, exchanging

from stepscope.detectors.cluster.waits_in_exchange import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: exchanging(0.6),
    expected=Expected(
        severity="ask",
        cost=0.0,
        where=(),
        metrics=("exchange_ratio",),
        title=("worker 0 of 2", "60 % of its step", "the other members"),
        pipeline_stage="gradient-sharing",
        remedy="join-the-sessions",
        basis="unknown",
    ),
    silent=lambda: exchanging(0.05),
    not_applicable=alone,
    missing="op trace of some steps",
    below=lambda: exchanging(0.099),
    at=lambda: exchanging(0.101),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_of_parameter_servers_it_is_information() -> None:
    """Their workers do not wait for each other: no other session would decide anything."""
    (found,), _ = look(DETECTOR, exchanging(0.6, roles={"ps": 1, "worker": 1}))
    assert (found.severity, found.remedies[0].what_if) == ("info", None)
    assert "the parameter servers" in found.title


def test_a_cluster_of_one_task_exchanges_with_nobody() -> None:
    """It does not apply."""
    _, checked = look(DETECTOR, exchanging(0.6, tasks=1))
    assert (checked.outcome, checked.missing) == ("not-applicable", ())
