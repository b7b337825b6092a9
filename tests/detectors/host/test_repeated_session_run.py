"""HST012 repeated-session-run: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US, Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import growing
from tests.detectors.session_jobs import HELD_OUT, LATER, LOSS, TRAIN, UNFED, fetching, tables

from stepscope.detectors.host.repeated_session_run import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: fetching(40 * MS),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", LOSS), ("train.py", TRAIN)),
        metrics=("repeated_ratio", "shared_ratio", "runs_per_step"),
        title=("same part of the graph 2 times", "Mean:0", "GradientDescent", "it takes 40 ms of each step"),
        pipeline_stage="forward-backward",
        remedy="one-run",
    ),
    silent=lambda: fetching(40 * MS, line=HELD_OUT),
    not_applicable=lambda: growing(MS),
    missing="nodes of traced graphs",
    below=lambda: fetching(10 * MS - 200 * US),
    at=lambda: fetching(10 * MS),
    edges={
        "min_runs": Edge(below=lambda: fetching(40 * MS, every=3), at=lambda: fetching(40 * MS, every=2)),
        "min_shared": Edge(below=lambda: fetching(40 * MS, "Sum:0"), at=lambda: fetching(40 * MS, "Mul:0")),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    "job",
    [
        fetching(40 * MS, line=HELD_OUT),
        fetching(40 * MS, line=LATER),
        fetching(40 * MS, line=UNFED),
        fetching(40 * MS, "Adam"),
        fetching(40 * MS, "accuracy:0"),
        fetching(40 * MS, "Mean:0, elsewhere:0"),
        fetching(40 * MS, graph=tables(takes=True)),
    ],
    ids=["held-out", "bound-anew", "unfed", "second-optimizer", "shares-nothing", "not-in-the-graph", "another-batch"],
)
def test_a_run_that_another_one_could_not_be(job: Job) -> None:
    """Another feed, a batch of its own, an optimizer's update, a part of the graph that no other run needs."""
    assert "HST012" not in codes(job)


def test_a_program_that_does_not_parse_is_none() -> None:
    """Feeds are read from the source."""
    job = fetching(40 * MS)
    job.sources = dict.fromkeys(job.sources, "for (")
    assert "HST012" not in codes(job)
