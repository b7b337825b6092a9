"""GRF009 double-precision-in-step: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, double, double_tables, graph_only
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.double_precision_in_step import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: double(60_000),
    expected=Expected(
        severity="high",
        cost=0.36,
        where=(("train.py", LINE),),
        metrics=("double_ratio", "saved_ratio", "traced_steps"),
        title=("60 %", "double precision (float64)"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="single-precision",
        basis="modelled",
    ),
    silent=lambda: double(60_000, weights="float64"),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: double(16_500),
    at=lambda: double(16_900),
    edges={
        "min_elements": Edge(
            below=lambda: graph_only(double_tables(elements="9999")),
            at=lambda: graph_only(double_tables(elements="10000")),
            shows="undecided",
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_learning_rate_in_double_precision_is_none() -> None:
    """Scalars of a schedule are float64 often, and cost nothing."""
    assert codes(double(30, elements="")) == []
