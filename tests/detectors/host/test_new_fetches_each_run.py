"""HST017 new-fetches-each-run: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US
from tests.detectors.asking import codes, find, look
from tests.detectors.eager_jobs import refetching
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import TIDY, growing, nothing

from stepscope.detectors.host.new_fetches_each_run import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: refetching(62 * MS, known=10),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", TIDY),),
        metrics=("new_ratio", "first_runs", "runs", "usual_ns"),
        title=("98 of 107 session runs", "never run together before", "60 ms beyond a usual run", "60 %"),
        introduced="training",
        pipeline_stage="forward-backward",
        remedy="fetch-one-tensor",
    ),
    silent=lambda: refetching(62 * MS, first=10),
    not_applicable=nothing,
    missing="steps",
    below=lambda: refetching(7 * MS - US, known=10),
    at=lambda: refetching(7 * MS, known=10),
    edges={
        "min_first": Edge(
            below=lambda: refetching(250 * MS, first=5, known=0), at=lambda: refetching(62 * MS, first=40)
        ),
        "min_share": Edge(below=lambda: refetching(62 * MS, first=18), at=lambda: refetching(62 * MS, first=21)),
        "min_factor": Edge(
            below=lambda: refetching(6 * MS - US, known=10), at=lambda: refetching(7 * MS + US, known=10)
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("samples", "found"), [(64, True), (32, False)])
def test_other_runs_show_what_a_run_takes(samples: int, *, found: bool) -> None:
    """Where a line runs nothing twice, the session's other runs of as many samples tell; smaller ones do not."""
    said = [f for f in find(refetching(62 * MS, samples=samples)) if f.code == "HST017"]
    assert [f.cost.basis for f in said] == (["modelled"] if found else [])


def test_without_a_known_run_there_is_a_question() -> None:
    """Where everything is new, only an op trace shows what a run takes."""
    findings, checked = look(refetching(62 * MS, training=False))
    assert "HST017" not in [f.code for f in findings]
    assert (checked["HST017"].outcome, checked["HST017"].capture) == ("undecided", "ops")


def test_a_graph_that_grows_is_told_as_that() -> None:
    """Fetches that are new because the loop makes them are the growing graph's."""
    assert "HST017" not in codes(growing(62 * MS))
