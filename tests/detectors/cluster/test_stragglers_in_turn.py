"""DST002 stragglers-in-turn: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.member_jobs import TOGETHER, alone, synchronous

from stepscope.detectors.cluster.stragglers_in_turn import DETECTOR


def turning(ms: float, members: int = 4) -> list[list[float]]:
    """Own times of members of which each is slow once in so many steps."""
    return [[1.0 + (ms if n == j else 0.0) for n in range(members)] for j in range(members)]


FIXTURES = Fixtures(
    firing=lambda: synchronous(turning(20.0)),
    expected=Expected(
        severity="medium",
        cost=0.20,
        where=(),
        metrics=("spread_ns", "most_often_ratio", "common_steps"),
        title=("another member", "20 ms", "20 %"),
        pipeline_stage="none",
        remedy="equal-work",
    ),
    silent=lambda: synchronous([[21.0]] * 4),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: synchronous(turning(4.9)),
    at=lambda: synchronous(turning(5.1)),
    edges={
        "max_one": Edge(
            below=lambda: synchronous([[21.0] * 7 + [1.0] * 3, [1.0] * 7 + [21.0] * 3]),
            at=lambda: synchronous([[21.0] * 5 + [1.0] * 5, [1.0] * 5 + [21.0] * 5]),
        )
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)
