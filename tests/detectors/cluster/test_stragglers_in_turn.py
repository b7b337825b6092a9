"""DST002 stragglers-in-turn: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import PERIOD, STEPS, TOGETHER, MemberJob, alone, synchronous

from stepscope.detectors.cluster.stragglers_in_turn import DETECTOR


def turning(ms: float, members: int = 4) -> list[list[float]]:
    """Own times of members of which each is slow once in so many steps."""
    return [[1.0 + (ms if n == j else 0.0) for n in range(members)] for j in range(members)]


FIXTURES = Fixtures(
    firing=lambda: synchronous(turning(20.0)),
    expected=Expected(
        severity="medium",
        cost=0.20,
        where=(("train.py", 20),),
        metrics=("spread_ns", "most_often_ratio", "common_steps"),
        title=("another member", "20 ms", "of it other Python", "20 %"),
        pipeline_stage="output-processing",
        remedy="equal-work",
    ),
    silent=lambda: synchronous([[21.0]] * 4),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: synchronous(turning(4.9)),
    at=lambda: synchronous(turning(5.1)),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_a_barrier_in_the_input_is_named() -> None:
    """Where the slowest of each step waited for its input, every step waits for the slowest input of all."""
    job = synchronous(turning(20.0))
    assert isinstance(job, MemberJob)
    for j, one in enumerate([job, *job.others]):
        waits = one.nexts()
        for n in range(STEPS):
            waits.at(n * PERIOD, (20 * MS if n % 4 == j else 0) + MS // 2)
    (found,), _ = look(DETECTOR, job)
    assert "of it input wait" in found.title
    assert found.pipeline_stage == "preprocessing"
    assert [one.id for one in found.remedies] == ["even-input"]


@pytest.mark.parametrize("often", [5, 7], ids=["as-often", "more-often"])
def test_one_that_is_slow_more_often_is_named(often: int) -> None:
    """Where it is not so in most steps by the same, which is another finding, all are slow in turn."""
    first = [1.0 + (4.0 * (n + 1) if n < often else 0.0) for n in range(10)]
    found, _ = look(DETECTOR, synchronous([first, [1.0] * often + [21.0] * (10 - often)]))
    assert [("worker 0 in" in one.title) for one in found] == [often > 6]


def test_the_same_one_in_most_steps_is_another_finding() -> None:
    """DST001 says it."""
    found, _ = look(DETECTOR, synchronous([[21.0] * 7 + [1.0] * 3, [1.0] * 7 + [21.0] * 3]))
    assert not found
