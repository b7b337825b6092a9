"""UTL001 utilisation-dips: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import MISSING, dipping

from stepscope.detectors.system.utilisation_dips import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: dipping(4),
    expected=Expected(
        severity="low",
        cost=7 / 28 * 0.3,
        where=(),
        metrics=("lost_ratio", "dip_ratio", "dips", "period_s", "period_spread", "usual", "within"),
        title=("CPU utilisation dips every 4.0 s", "from 1.5 to 0.2 cores", "compiled step itself"),
        introduced="unknown",
        pipeline_stage="forward-backward",
        remedy="less-often",
        basis="modelled",
    ),
    silent=lambda: dipping(4, within=1.2),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: dipping(4, within=0.91),
    at=lambda: dipping(4, within=0.89),
    edges={
        "min_others_cores": Edge(
            below=lambda: dipping(4, others=0.29), at=lambda: dipping(4, others=0.31), shows="info"
        ),
        "limits.min_usual": Edge(
            below=lambda: dipping(4, usual=0.199, within=0.01), at=lambda: dipping(4, usual=0.201, within=0.01)
        ),
        "limits.min_dips": Edge(
            below=lambda: dipping(0, dips=(4, 9, 14, 19)), at=lambda: dipping(0, dips=(4, 9, 14, 19, 24))
        ),
        "limits.min_period_s": Edge(below=lambda: dipping(2), at=lambda: dipping(3)),
        "limits.max_spread": Edge(
            below=lambda: dipping(0, dips=(2, 5, 12, 15, 22, 25)), at=lambda: dipping(0, dips=(2, 5, 11, 14, 20, 23))
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)
