"""DST005 exchange-dominates: its fixtures, and what it says of the link."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, Job, filled
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import PERIOD, STEPS, TOGETHER, alone, computing, synchronous

from stepscope.detectors.cluster.exchange_dominates import DETECTOR
from stepscope.model.session.session import Peers
from stepscope.tables.network_tables import TcpTable
from stepscope.tables.records import I64

FIXTURES = Fixtures(
    firing=lambda: computing([0.4, 0.3]),
    expected=Expected(
        severity="ask",
        cost=0.0,
        where=(),
        metrics=("exchange_ratio",),
        title=("60 % of each step", "without waits", "no link is held by the network"),
        pipeline_stage="gradient-sharing",
        remedy="exchange-less-often",
        basis="unknown",
    ),
    silent=lambda: computing([0.9, 0.3]),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: computing([0.752, 0.3]),
    at=lambda: computing([0.748, 0.3]),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_without_a_trace_nothing_is_said() -> None:
    """The call of a member holds its compute as well."""
    found, _ = look(DETECTOR, synchronous([[1.0], [1.0]]))
    assert not found


def linked(**counters: I64) -> Job:
    """Members whose connections have counters of a kind, growing evenly."""
    job = computing([0.4, 0.3])
    count = np.arange(STEPS, dtype=np.int64)
    table = filled(
        TcpTable,
        STEPS,
        at_ns=count * PERIOD,
        pid=np.full(STEPS, 100),
        acked_bytes=1_000_000 * count,
        sent_bytes=1_000_000 * count,
        busy_ns=PERIOD // 2 * count,
        min_rtt_ns=np.full(STEPS, MS // 10),
        rtt_ns=np.full(STEPS, MS // 5),
    )
    job.resources["peers"] = Peers(tcp=replace(table, **counters))
    job.resources["resource_names"] = ("tcp:10.0.0.1:5000 10.0.0.2:6000",)
    return job


@pytest.mark.parametrize(
    ("counters", "said", "metric", "remedy"),
    [
        (
            {"retrans_bytes": 20_000 * np.arange(STEPS), "retrans": 14 * np.arange(STEPS)},
            "2.0 % of the bytes between 10.0.0.1 and 10.0.0.2 are lost",
            "lost_ratio",
            "exchange-less-often",
        ),
        (
            {"min_rtt_ns": np.full(STEPS, 20 * MS), "rtt_ns": np.full(STEPS, 21 * MS)},
            "a round trip between 10.0.0.1 and 10.0.0.2 takes 20 ms",
            "min_rtt_ns",
            "exchange-less-often",
        ),
    ],
)
def test_the_link_that_holds_it_is_named(counters: dict[str, I64], said: str, metric: str, remedy: str) -> None:
    """By what the kernel's counters show of it; then it is more than a question."""
    (found,), _ = look(DETECTOR, linked(**counters))
    assert said in found.title
    assert "a member sends 968 KiB in a step" in found.title
    assert found.severity == "high"
    assert metric in {one.metric for one in found.evidence}
    assert [one.id for one in found.remedies] == [remedy, "mend-the-link"]
