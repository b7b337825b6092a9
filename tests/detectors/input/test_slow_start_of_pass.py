"""INP010 slow-start-of-pass: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import nothing
from tests.detectors.trend_jobs import starting

from stepscope.detectors.input.slow_start_of_pass import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: starting(401 * MS),
    expected=Expected(
        severity="high",
        cost=9 * 400 / (10 * 219 + 9 * 400),
        where=(("train.py", 72), ("train.py", 71)),
        metrics=("first_batches_ratio", "first_batch_ns", "passes"),
        title=("wait of 400 ms for its first batch", "skip() comes after map()"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="throw-away-first",
        per_step=9 * 400 * MS // 98,
    ),
    silent=lambda: starting(400 * MS, passes=3),
    not_applicable=nothing,
    missing="steps",
    below=lambda: starting(41 * MS),
    at=lambda: starting(44 * MS),
    edges={
        "min_skipped_ratio": Edge(below=lambda: starting(60 * MS, left=71), at=lambda: starting(60 * MS, left=70)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


CODE = "INP010"


def said(job: Job) -> list[tuple[str, list[int]]]:
    """The ends of the titles of its findings, and their lines."""
    return [(f.title.rpartition("of the time")[2], [p.line for p in f.where]) for f in find(job) if f.code == CODE]


def test_what_skip_throws_away() -> None:
    """Skip behind a map that throws away half of the elements, or a number that is not known."""
    named = (": skip() comes after map(), which computes elements that are then discarded", [72, 71])
    assert said(starting(100 * MS, left=50)) == [named]
    assert said(starting(100 * MS)) == [named]


def test_shuffle_fills_its_buffer() -> None:
    """Shuffle makes nothing in vain: the map is not accused."""
    assert said(starting(100 * MS, by="Shuffle")) == [(": shuffle follows a map and fills its buffer from it", [72])]


def test_a_cache_that_take_cuts_short() -> None:
    """The map runs again in each pass, for the cache is thrown away: both are named."""
    (found,) = find(starting(100 * MS, by="Shuffle", cached=True))
    assert "the cache is discarded after each pass: take() follows it" in found.title
    assert [p.line for p in found.where] == [73, 74, 71]
    assert found.remedies[0].id == "take-first"


@pytest.mark.parametrize(
    ("by", "left"), [("Skip", 99), ("Filter", -2), ("Shard", -2)], ids=["headings", "filter", "shard"]
)
def test_what_takes_few_before_the_first(by: str, left: int) -> None:
    """The wait is told where it is long, but nothing is accused of it."""
    assert said(starting(60 * MS, by=by, left=left)) == []
    assert said(starting(400 * MS, by=by, left=left)) == [("", [])]


def test_a_pipeline_that_is_always_late() -> None:
    """The first batch of a pass takes as long as any other: the stage is slow, not the start."""
    assert said(starting(400 * MS, others=400 * MS)) == []
