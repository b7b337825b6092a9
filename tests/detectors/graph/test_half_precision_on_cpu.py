"""GRF015 half-precision-on-cpu: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, double, double_tables, running
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.half_precision_on_cpu import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: double(60_000, kind="float16"),
    expected=Expected(
        severity="high",
        cost=0.588,
        where=(("train.py", LINE),),
        metrics=("half_ratio", "saved_ratio", "traced_steps"),
        title=("60 %", "half precision (float16) on a CPU"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="single-precision",
        basis="modelled",
    ),
    silent=lambda: double(60_000, kind="bfloat16"),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: double(10_100, kind="float16"),
    at=lambda: double(10_300, kind="float16"),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_what_is_only_stored_in_half_precision() -> None:
    """A table of float16 whose rows are gathered and cast: nothing is computed in it."""
    tables = double_tables(kind="float16")
    assert codes(running(tables, ("features/MatMul:MatMul", 60_000))) == ["GRF015"]
    assert codes(running(tables, ("Cast:Cast", 60_000))) == []
