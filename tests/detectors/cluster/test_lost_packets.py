"""DST006 lost-packets: its fixtures."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Job, filled
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import STEPS, TOGETHER, MemberJob, alone, member

from stepscope.detectors.cluster.lost_packets import DETECTOR
from stepscope.model.session.session import Peers
from stepscope.tables.network_tables import PacketTable, TcpTable

PERIOD, LONGER = 100 * MS, 50 * MS
ONE, TWO = "10.0.0.1:5000", "10.0.0.2:6000"


def losing(
    every: int, longer: int = LONGER, *, lost: bool = True, other: str = TWO, dropped: bool = False, arrived: float = 0
) -> Job:
    """Two members whose exchange takes longer in every so-many-th step, in which a packet is sent again.

    Args:
        every: how many steps lie between two such.
        longer: by how much it takes longer.
        lost: whether a packet is.
        other: the other end of the connection.
        dropped: whether this host dropped each before.
        arrived: share of them of which the receiver reports a duplicate.
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
    counted = {"retrans": np.array([100, 0]), "dsack_dups": np.array([round(100 * arrived), 0])}
    rows = filled(TcpTable, 2, at_ns=np.array([0, at]), pid=np.array([100, 101]), connection=np.arange(2), **counted)
    again = np.array(times * lost, np.int64)
    reasons = np.concatenate([np.full(len(again), -1), np.full(len(again) * dropped, 2)]).astype(np.int64)
    packets = filled(
        PacketTable, len(reasons), at_ns=np.tile(again, 1 + dropped), reason=reasons, connection=0 * reasons
    )
    first, second = jobs
    first.others = [second]
    first.ended_ns = at + PERIOD
    first.resources["peers"] = Peers(tcp=rows, packets=packets)
    first.resources["resource_names"] = (
        f"tcp:{ONE} {other}",
        f"tcp:{TWO} {ONE}",
        "drop:QDISC_DROP",
    )
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


@pytest.mark.parametrize(("arrived", "found"), [(0.45, 1), (0.55, 0), (1.0, 0)])
def test_what_had_arrived_was_not_lost(arrived: float, found: int) -> None:
    """Where the receiver reports most of it as duplicates, it was only acknowledged late."""
    assert len(look(DETECTOR, losing(5, arrived=arrived))[0]) == found


def apart(*, longer: int = LONGER, by_server: bool = False, compared: bool = True, from_step: int = 0) -> Job:
    """Two workers that a server serves, each at its own pace; both become slow in the second half of the run, in
    different ways. Each fifth call of the second worker takes longer, with a packet sent again in it.

    Args:
        longer: by how much.
        by_server: whether the server sends it again, not the worker.
        compared: whether the server reads the workers' clock.
        from_step: the first such call.
    """
    server = MemberJob(pid=103, info=member(0, 1, role="ps", boot_id="boot" if compared else "other"))
    jobs, times, end = [MemberJob(pid=101 + index, info=member(index, 2)) for index in range(2)], [], 0
    for index, job in enumerate(jobs):
        call, at = job.function(call_file="/job/train.py", call_line=20, call_function="main"), 0
        for n in range(STEPS):
            noise = int(np.random.default_rng(n + STEPS * index).integers(0, 20 * MS))
            hit = index == 1 and n % 5 == 4 and n >= from_step
            dur = (100 + 31 * index) * MS + noise + (n > STEPS // 2) * 60 * MS + hit * longer
            call.at(at + MS, dur)
            times += [at + 2 * MS] * hit
            at += MS + dur
        end = max(end, at)
    ends = [f"10.0.0.{n}:5000" for n in (1, 2, 3)]
    pids, names = (
        np.array([101, 102, 103]),
        (f"tcp:{ends[0]} {ends[2]}", f"tcp:{ends[1]} {ends[2]}", f"tcp:{ends[2]} {ends[1]}"),
    )
    rows = filled(TcpTable, 3, at_ns=np.full(3, end), pid=pids, connection=np.arange(3))
    again = np.array(times, np.int64)
    packets = filled(PacketTable, len(again), at_ns=again, reason=0 * again - 1, connection=0 * again + 1 + by_server)
    first, second = jobs
    first.others, first.ended_ns = [second, server], end + PERIOD
    first.resources |= {"peers": Peers(tcp=rows, packets=packets), "resource_names": names}
    return first


@pytest.mark.parametrize("by_server", [True, False])
def test_members_that_do_not_step_together(*, by_server: bool) -> None:
    """The calls with such packets against those nearest to them, whichever end sent them again."""
    (found,), _ = look(DETECTOR, apart(by_server=by_server))
    link = "ps 0 to worker 1" if by_server else "worker 1 to ps 0"
    assert found.title.startswith(
        f"packets from {link} are lost and sent again: in 22 of 114 steps of worker 1 its call takes"
    )
    assert found.cost is not None
    assert found.cost.ratio == pytest.approx(0.2 * LONGER / (182 * MS), abs=0.01)


def test_members_that_do_not_step_together_and_lose_no_time() -> None:
    """A call is not compared with those of another part of the run, in which all is faster."""
    assert not look(DETECTOR, apart(longer=0, from_step=STEPS // 2))[0]
    assert not look(DETECTOR, apart(by_server=True, compared=False))[0]


def test_with_a_loss_in_every_step_there_is_nothing_to_compare() -> None:
    """Then it is not known what the exchange takes without."""
    found, _ = look(DETECTOR, losing(1))
    assert not found


def test_the_reason_of_this_host_is_told() -> None:
    """Where the kernel dropped the packets before they left."""
    (found,), _ = look(DETECTOR, losing(5, dropped=True))
    assert "this host drops them (QDISC_DROP)" in found.title
