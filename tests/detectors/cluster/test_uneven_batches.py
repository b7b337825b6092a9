"""DST003 uneven-batches: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import TOGETHER, alone, computing, synchronous

from stepscope.detectors.cluster.uneven_batches import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: synchronous([[1.0], [1.0]], samples=(64, 96)),
    expected=Expected(
        severity="info",
        cost=0.0,
        where=(),
        metrics=("largest_samples", "smallest_samples"),
        title=("worker 1 trains on 96", "worker 0 on 64"),
        introduced="data preparation",
        pipeline_stage="gradient-sharing",
        remedy="even-batches",
        basis="unknown",
    ),
    silent=lambda: synchronous([[1.0], [1.0]], samples=(64, 64)),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: synchronous([[1.0], [1.0]], samples=(1000, 1099)),
    at=lambda: synchronous([[1.0], [1.0]], samples=(1000, 1100)),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_the_largest_batch_computes_longest() -> None:
    """Its cost is what the others wait, at most what an even share would save: modelled, halved below."""
    (found,), _ = look(DETECTOR, computing([0.1, 0.4, 0.1], samples=(64, 256, 64)))
    assert (found.severity, found.cost.basis) == ("high", "modelled")
    assert found.cost.ratio == pytest.approx(0.3, abs=0.02)
    assert found.cost.low == pytest.approx(0.15, abs=0.02)
