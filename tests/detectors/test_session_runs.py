"""Runs of a session that look like repetitions and are none."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job
from tests.detectors.session_jobs import HELD_OUT, LATER, UNFED, fetching, tables
from tests.detectors.test_look_alikes import codes


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
