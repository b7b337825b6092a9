"""DST007 server-overloaded: its fixtures."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Job, S, filled
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.member_jobs import TOGETHER, MemberJob, alone, exchanging, member

from stepscope.detectors.cluster.server_overloaded import DETECTOR
from stepscope.model.session.session import Peers
from stepscope.tables.network_tables import TcpTable
from stepscope.tables.records import HostTable, ProcessTable

JOBS = {"ps": 1, "worker": 1}
SECONDS = 60
SERVER = 900


def served(
    exchange: float, cpu: float, *, unread: int = 0, quota: float = 0.0, waiting: float = 0.0, full: str = ""
) -> Job:
    """A worker whose traced steps lie in exchanges for a share, and a server on two CPUs.

    Args:
        exchange: that share.
        cpu: CPUs that the server uses.
        unread: bytes that it has not read, at each look.
        quota: CPUs that its cgroup has; 0: no quota.
        waiting: threads of it that wait for a CPU.
        full: to which end the worker finds the window full for half of the time.
    """
    job = exchanging(exchange, roles=JOBS, tasks=2)
    assert isinstance(job, MemberJob)
    at = np.arange(SECONDS, dtype=np.int64) * S
    server = MemberJob(pid=SERVER, info=member(0, 2, role="ps", rank=-1, jobs=JOBS), ended_ns=SECONDS * S)
    job.others = [server]
    job.processes = filled(
        ProcessTable,
        SECONDS,
        at_ns=at,
        pid=np.full(SECONDS, SERVER),
        cpu_user_ns=(at * cpu).astype(np.int64),
        wait_ns=(at * waiting).astype(np.int64),
    )
    job.hosts = filled(
        HostTable,
        SECONDS,
        at_ns=at,
        cpus=np.full(SECONDS, 2),
        quota_milli_cpus=np.full(SECONDS, round(1000 * quota) or -1),
    )
    rows = filled(
        TcpTable,
        SECONDS,
        at_ns=at,
        pid=np.full(SECONDS, SERVER),
        acked_bytes=at // 1_000,
        received_bytes=at // 1_000,
        unread_bytes=np.full(SECONDS, unread),
        min_rtt_ns=np.full(SECONDS, MS // 10),
        rtt_ns=np.full(SECONDS, MS // 10),
    )
    sent = filled(
        TcpTable,
        SECONDS,
        at_ns=at,
        connection=np.ones(SECONDS, np.int64),
        pid=np.full(SECONDS, job.pid),
        acked_bytes=at // 1_000,
        busy_ns=(at * 0.7).astype(np.int64),
        rwnd_limited_ns=at // 2,
    )
    job.resources["peers"] = Peers(tcp=TcpTable.concat([rows, sent]) if full else rows)
    job.resources["resource_names"] = ("tcp:10.0.0.1:5000 10.0.0.2:6000", f"tcp:10.0.0.2:6000 {full}")
    return job


FIXTURES = Fixtures(
    firing=lambda: served(0.6, 1.95),
    expected=Expected(
        severity="high",
        cost=0.0,
        where=(),
        metrics=("exchange_ratio", "server_cpu_ratio"),
        title=("ps 0 is at its limit", "1.95 of its 2 CPUs", "60 % of its step"),
        pipeline_stage="gradient-sharing",
        remedy="more-servers",
        basis="unknown",
    ),
    silent=lambda: served(0.6, 0.5),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: served(0.24, 1.95),
    at=lambda: served(0.26, 1.95),
    edges={
        "min_cpu": Edge(below=lambda: served(0.6, 1.78), at=lambda: served(0.6, 1.82)),
        "min_waiting": Edge(below=lambda: served(0.6, 0.3, waiting=0.49), at=lambda: served(0.6, 0.3, waiting=0.51)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_a_quota_is_a_limit() -> None:
    """Less than the CPUs of the host."""
    (found,), _ = look(DETECTOR, served(0.6, 0.95, quota=1.0))
    assert "0.95 of its 1 CPU:" in found.title


def test_a_server_that_reads_late_is_overloaded() -> None:
    """What the workers sent lies unread, whatever its CPUs do."""
    (found,), _ = look(DETECTOR, served(0.6, 0.5, unread=1_000_000))
    assert "it reads what 10.0.0.2 sends late" in found.title
    assert "unread_ratio" in {one.metric for one in found.evidence}


@pytest.mark.parametrize(("cpu", "outcome"), [(1.95, "undecided"), (0.5, "clear")])
def test_without_a_trace_nothing_says_whether_workers_wait(cpu: float, outcome: str) -> None:
    """A server at its limit is undecided then; of one with CPUs left nothing is asked."""
    job = served(0.6, cpu)
    del job.resources["op_traces"]
    found, checked = look(DETECTOR, job)
    assert (found, checked.outcome) == ((), outcome)


def test_a_worker_sees_that_the_server_reads_late() -> None:
    """Short pauses fill its window, while looks at the server's end rarely meet unread data."""
    (found,), _ = look(DETECTOR, served(0.6, 0.5, full="10.0.0.1:5000"))
    assert "it reads what 10.0.0.2 sends late" in found.title
    assert not look(DETECTOR, served(0.6, 0.5, full="10.0.0.9:5000"))[0]


def test_a_server_whose_cpus_others_use_is_named() -> None:
    """It waits for a CPU longer than it has one; a server that mostly runs does not wait for others."""
    (found,), _ = look(DETECTOR, served(0.6, 0.3, waiting=2.0))
    assert "others use its CPUs, it gets 0.30 of 2" in found.title
    assert "waiting_threads" in {one.metric for one in found.evidence}
    assert not look(DETECTOR, served(0.6, 1.0, waiting=0.9))[0]
