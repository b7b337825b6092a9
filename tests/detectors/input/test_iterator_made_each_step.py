"""INP009 iterator-made-each-step: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US, Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.iterator_jobs import fresh
from tests.detectors.jobs import pulled

from stepscope.detectors.input.iterator_made_each_step import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: fresh(30 * MS, 20 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 40), ("train.py", 72), ("train.py", 71)),
        metrics=("fresh_ratio", "iterators", "batches_per_iterator", "samples_on_making"),
        title=("a new iterator", "for each batch", "50 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="one-iterator",
    ),
    silent=lambda: fresh(30 * MS, 20 * MS, batches=10),
    not_applicable=lambda: pulled(30 * MS),
    missing="stack samples",
    below=lambda: fresh(10 * MS - US),
    at=lambda: fresh(10 * MS + US),
    edges={
        "max_pulls": Edge(
            below=lambda: fresh(30 * MS, 20 * MS, batches=3), at=lambda: fresh(30 * MS, 20 * MS, batches=2)
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("job", "found"),
    [(fresh(30 * MS), ["INP009"]), (fresh(0, 50 * MS), ["INP009"]), (fresh(30 * MS, batches=5), [])],
    ids=["filling", "making", "some-batches-each"],
)
def test_iterators_that_are_made_for_one_batch(job: Job, found: list[str]) -> None:
    """Filling the buffers anew or making the iterator may take the time; one for five batches is a short epoch."""
    assert [code for code in codes(job) if code == "INP009"] == found
