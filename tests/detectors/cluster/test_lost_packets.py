"""DST006 lost-packets: its fixtures."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Job, filled
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import STEPS, TOGETHER, MemberJob, alone, member

from stepscope.detectors.cluster.lost_packets import DETECTOR
from stepscope.model.network_tables import PacketTable, TcpTable
from stepscope.model.session.session import Peers

PERIOD, LONGER = 100 * MS, 50 * MS
ONE, TWO = "10.0.0.1:5000", "10.0.0.2:6000"


def losing(every: int, longer: int = LONGER, *, lost: bool = True, other: str = TWO, dropped: bool = False) -> Job:
    """Two members whose exchange takes longer in every so-many-th step, in which a packet is sent again.

    Args:
        every: how many steps lie between two such.
        longer: by how much it takes longer.
        lost: whether a packet is.
        other: the other end of the connection.
        dropped: whether this host dropped each before.
    """
    jobs, at = [MemberJob(pid=100 + index, info=member(index, 2)) for index in range(2)], 0
    calls = [job.function(call_file="/job/train.py", call_line=20, call_function="main") for job in jobs]
    times = []
    for n in range(STEPS):
        noise = int(np.random.default_rng(n).integers(0, MS // 10))
        hit = n % every == every - 1
        dur = PERIOD - MS + noise + (longer if hit else 0)
        for call in calls:
            call.at(at + MS, dur)
        if hit:
            times.append(at + 2 * MS)
        at += MS + dur
    rows = filled(TcpTable, 2, at_ns=np.array([0, at]), pid=np.array([100, 101]), connection=np.arange(2))
    again = np.array(times * lost, np.int64)
    reasons = np.concatenate([np.full(len(again), -1), np.full(len(again) * dropped, 2)]).astype(np.int64)
    packets = filled(
        PacketTable, len(reasons), at_ns=np.tile(again, 1 + dropped), reason=reasons, connection=0 * reasons
    )
    first, second = jobs
    first.others = [second]
    first.ended_ns = at + PERIOD
    first.resources["peers"] = Peers(tcp=rows, packets=packets)
    first.resources["resource_names"] = (f"tcp:{ONE} {other}", f"tcp:{TWO} {ONE}", "drop:QDISC_DROP")
    return first


FIXTURES = Fixtures(
    firing=lambda: losing(5),
    expected=Expected(
        severity="low",
        cost=0.09,
        per_step=9_600_000,
        introduced="environment setting",
        where=(),
        metrics=("lost_steps", "common_steps", "exchange_ns", "usual_ns", "packets", "longer_ratio"),
        title=("from worker 0 to worker 1 are lost", "instead of 99"),
        pipeline_stage="gradient-sharing",
        remedy="mend-the-link",
    ),
    silent=lambda: losing(5, lost=False),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: losing(5, 24 * MS),
    at=lambda: losing(5, 26 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_other_connections_do_not_count() -> None:
    """What was sent again to somebody who is no member delays no exchange."""
    found, _ = look(DETECTOR, losing(5, other="192.0.2.1:443"))
    assert not found


def test_with_a_loss_in_every_step_there_is_nothing_to_compare() -> None:
    """Then it is not known what the exchange takes without."""
    found, _ = look(DETECTOR, losing(1))
    assert not found


def test_the_reason_of_this_host_is_told() -> None:
    """Where the kernel dropped the packets before they left."""
    (found,), _ = look(DETECTOR, losing(5, dropped=True))
    assert "this host drops them (QDISC_DROP)" in found.title
