"""What holds a link, by counters as measured on five hosts behind a relay (docs/benchmarks/distributed.md)."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, Job, S, filled

from stepscope.causes.system import link_limits
from stepscope.causes.system.link_limits import reason_of
from stepscope.derive.machine import tcp_links
from stepscope.derive.machine.tcp_links import ConnectionUse
from stepscope.derive.view import SessionView
from stepscope.model.session.session import Manifest, Peers, Session
from stepscope.report.document.machine import links as link_lines
from stepscope.report.sections.machine import links
from stepscope.tables.network_tables import TcpTable
from stepscope.timeline import series_tracks

US = 1_000
BASE = ConnectionUse(
    pid=1,
    here="10.0.0.1:5000",
    there="10.0.0.2:6000",
    seconds=5.0,
    sent_bytes=80_000_000,
    received_bytes=0,
    retrans=8,
    lost_ratio=0.0002,
    min_rtt_ns=40 * US,
    rtt_ns=1_400 * US,
    busy_ratio=0.32,
    receiver_ratio=0.12,
    buffer_ratio=0.0,
    limited_ratio=0.2,
    busy_bytes_s=48e6,
    delivery_bytes_s=480e6,
    unread_ratio=0.0,
)
MEASURED = [
    pytest.param(BASE, "none", id="base, on a crowded machine"),
    pytest.param(replace(BASE, busy_ratio=1.0, min_rtt_ns=20 * MS, rtt_ns=21 * MS), "distance", id="delay"),
    pytest.param(replace(BASE, busy_ratio=0.06, min_rtt_ns=20 * MS), "none", id="far, and rarely used"),
    pytest.param(
        replace(BASE, busy_ratio=0.58, lost_ratio=0.0114, retrans=94, min_rtt_ns=1 * MS, rtt_ns=3 * MS),
        "loss",
        id="loss",
    ),
    pytest.param(
        replace(BASE, busy_ratio=1.0, rtt_ns=21 * MS, limited_ratio=1.0, busy_bytes_s=2.45e6, delivery_bytes_s=2.5e6),
        "rate",
        id="rate",
    ),
    pytest.param(
        replace(
            BASE,
            busy_ratio=1.0,
            rtt_ns=31 * MS,
            limited_ratio=1.0,
            busy_bytes_s=0.6e6,
            delivery_bytes_s=0.6e6,
            lost_ratio=0.07,
        ),
        "rate",
        id="rate, and the queue overflows",
    ),
    pytest.param(
        replace(BASE, busy_ratio=0.62, rtt_ns=19 * MS, busy_bytes_s=3.9e6, limited_ratio=0.0),
        "none",
        id="its acknowledgements are in another's queue",
    ),
    pytest.param(replace(BASE, busy_ratio=0.88, receiver_ratio=0.59, rtt_ns=5 * MS), "peer-reads-slowly", id="reader"),
    pytest.param(replace(BASE, busy_ratio=0.03, unread_ratio=0.8), "we-read-slowly", id="at the reader"),
    pytest.param(replace(BASE, busy_ratio=0.5, buffer_ratio=0.5), "send-buffer", id="send buffer"),
    pytest.param(replace(BASE, busy_ratio=0.34, lost_ratio=0.003, retrans=107), "none", id="before a straggler"),
    pytest.param(replace(BASE, busy_ratio=0.9, min_rtt_ns=-1), "none", id="an old kernel"),
]


@pytest.mark.parametrize(("use", "reason"), MEASURED)
def test_reason(use: ConnectionUse, reason: str) -> None:
    """Each condition has its own counters, and what is not held has none of them."""
    assert reason_of(use) == reason


@pytest.mark.parametrize(("step_ms", "reason"), [(5, "distance"), (10, "distance"), (11, "none"), (0, "none")])
def test_what_is_far_is_a_matter_of_the_step(step_ms: int, reason: str) -> None:
    """A round trip of 1 ms is far where steps take 10 ms, and near where they take longer."""
    assert reason_of(replace(BASE, min_rtt_ns=1 * MS), step_ms * MS) == reason


@pytest.mark.parametrize(
    ("at", "below", "reason"),
    [
        (
            replace(BASE, lost_ratio=link_limits.MIN_LOSS),
            replace(BASE, lost_ratio=0.99 * link_limits.MIN_LOSS),
            "loss",
        ),
        (
            replace(BASE, busy_ratio=0.5, receiver_ratio=2 * link_limits.MIN_RECEIVER),
            replace(BASE, busy_ratio=0.5, receiver_ratio=1.98 * link_limits.MIN_RECEIVER),
            "peer-reads-slowly",
        ),
        (
            replace(BASE, unread_ratio=link_limits.MIN_UNREAD),
            replace(BASE, unread_ratio=0.99 * link_limits.MIN_UNREAD),
            "we-read-slowly",
        ),
    ],
)
def test_thresholds(at: ConnectionUse, below: ConnectionUse, reason: str) -> None:
    """At the threshold it is the reason, just below it is not."""
    assert reason_of(at) == reason
    assert reason_of(below) == "none"


def session() -> Session:
    """Ten seconds of two connections with one host and one within this; the second with the host loses."""
    at = np.arange(11, dtype=np.int64) * S
    count = np.arange(11, dtype=np.int64)
    quiet = filled(
        TcpTable,
        11,
        at_ns=at,
        pid=np.full(11, 7),
        acked_bytes=1_000_000 * count,
        sent_bytes=1_000_000 * count,
        busy_ns=S // 10 * count,
        min_rtt_ns=np.full(11, 90 * US),
        rtt_ns=np.full(11, 200 * US),
    )
    losing = replace(
        quiet,
        connection=np.full(11, 1),
        busy_ns=S // 2 * count,
        retrans_bytes=20_000 * count,
        retrans=10 * count,
        dsack_dups=2 * count,
        received_bytes=500_000 * count,
    )
    inside = replace(quiet, connection=np.full(11, 2))
    names = ("tcp:10.0.0.1:5000 10.0.0.2:6000", "tcp:10.0.0.1:5001 10.0.0.2:6001", "tcp:127.0.0.1:1 127.0.0.1:2")
    table = TcpTable.concat([quiet, losing, inside])
    return Session(manifest=Manifest(ended_ns=10 * S), peers=Peers(tcp=table), resource_names=names)


def test_connections_are_summed_up_by_hosts() -> None:
    """A link has what its connections carried; the busiest comes first."""
    between, inside = tcp_links.of(session())
    assert (between.here, between.there, between.within_host) == ("10.0.0.1", "10.0.0.2", False)
    assert (between.sent_bytes, between.received_bytes) == (20_000_000, 5_000_000)
    assert [use.busy_ratio for use in between.connections] == [0.5, 0.1]
    assert inside.within_host
    losing = between.connections[0]
    assert losing.retrans == 100
    assert losing.lost_ratio == pytest.approx(0.02 * 0.8)  # a fifth had arrived


def test_only_a_part_of_the_time() -> None:
    """Growth between the samples inside counts."""
    part = tcp_links.of(session(), 2 * S, 5 * S)
    assert part[0].sent_bytes == 6_000_000
    assert tcp_links.of(session(), 20 * S, 30 * S) == ()


def test_the_report_says_what_holds_a_link() -> None:
    """The connection that is held shows the reason of its link; lines for the terminal name held links alone."""
    found = links.build(SessionView(session()))
    assert [link.reason for link in found] == ["loss", "none"]
    assert found[0].connections == 2
    assert found[0].text.startswith("losses: 1.6 % of the bytes sent again (100 segments)")
    assert link_lines.short(found) == [f"to 10.0.0.2: {found[0].text}"]
    assert len(link_lines.rows(found)) == 2
    free = [replace_reason for replace_reason in found if replace_reason.within_host]
    assert link_lines.short(tuple(free)) == []


def test_steps_without_connections_have_no_links() -> None:
    """A job on one host says nothing about links."""
    job = Job(ended_ns=10 * S)
    job.framework()
    job.loop().at(0, 10 * S)
    job.execution().every(20 * MS, 500, dur=18 * MS)
    assert links.build(SessionView(job.session())) == ()


def test_connections_have_tracks() -> None:
    """Bytes sent and bytes sent again, where there were any."""
    keys = [track.key for track in series_tracks.tracks(session()) if track.key.startswith("tcp")]
    assert len(keys) == 4
    assert sum(key.endswith("again") for key in keys) == 1
