"""GRF004 growing-graph: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, TIDY, growing

from stepscope.detectors.graph.growing_graph import DETECTOR
from stepscope.model.log.events import GraphSize

FIXTURES = Fixtures(
    firing=lambda: growing(62 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", TIDY),),
        metrics=("growing_ratio", "ops_per_step", "graph_ops", "fresh_runs"),
        title=("the graph grows", "ops a step", "98 runs", "60 ms each", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="build-graph-once",
    ),
    silent=lambda: growing(62 * MS, until=0),
    not_applicable=lambda: growing(62 * MS, sized=False),
    missing="sizes of the graphs of sessions",
    below=lambda: growing(5 * MS - US),
    at=lambda: growing(5 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize("until", [0, 20, 49])
def test_a_graph_that_is_finished_is_none(until: int) -> None:
    """Fetches of many kinds on a graph that is finished, or was during the run, are no growing graph."""
    assert "GRF004" not in codes(growing(62 * MS, until=until))


def test_a_graph_that_grows_by_little_is_none() -> None:
    """A few ops in a whole run, as of a saver for each epoch, grow no graph."""
    job = growing(62 * MS, ops=0)
    job.event(GraphSize(at=90 * PERIOD, id=1, ops=103))
    assert "GRF004" not in codes(job)
