"""GEN001 costly-compute-line: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, graph_only, running

from stepscope.detectors.general.costly_compute_line import DETECTOR


def tables(kind: str = "TopKV2") -> Tables:
    """A step with one op of a line, and one of no line."""
    found = Tables()
    step = found.graph()
    data = step.op("data", "Placeholder", outputs="float32[64,64]")
    step.op("rank", kind, data, line=LINE, function="rank")
    step.op("loss", "Conv2D", data)
    return found


def sorting(spent: float, *, kind: str = "TopKV2") -> Job:
    """A step in which the op of the line runs ``spent`` us of 1,000."""
    return running(tables(kind), (f"rank:{kind}", spent), ("loss:Conv2D", 1_000 - spent))


FIXTURES = Fixtures(
    firing=lambda: sorting(600.0),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", LINE),),
        metrics=("line_ratio", "call_ratio", "part of TopKV2"),
        title=("line 12 of rank", "TopKV2"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="out-of-the-step",
    ),
    silent=lambda: sorting(600.0, kind="MatMul"),
    not_applicable=lambda: graph_only(tables()),
    missing="op trace of some steps",
    below=lambda: sorting(150.0),
    at=lambda: sorting(400.0),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)
