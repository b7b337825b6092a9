"""KRN006 op-slower-than-alone: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.graph_jobs import LINE
from tests.detectors.replay_jobs import replayed, times
from tests.detectors.traced_jobs import TRACE, untraced

from stepscope.detectors.device.op_slower_than_alone import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: replayed(60_000, times(20_000), fed=50_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", LINE),),
        metrics=("slowed_ratio", "saved_ratio", "input_threads", "others_cores", "traced_steps"),
        title=("MatMul", "33 %", "input pipeline"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="free-the-cores",
        basis="modelled",
    ),
    silent=lambda: replayed(60_000, times(50_000), fed=50_000),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: replayed(9_000, times(6_100), fed=8_000),
    at=lambda: replayed(9_200, times(6_100), fed=8_000),
    edges={
        "min_input_threads": Edge(
            below=lambda: replayed(60_000, times(20_000), fed=17_000),
            at=lambda: replayed(60_000, times(20_000), fed=19_000),
            shows="high",
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
