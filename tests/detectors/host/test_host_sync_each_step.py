"""HST008 host-sync-each-step: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, REPORT, STEPS, nothing, synced

from stepscope.detectors.host.host_sync_each_step import DETECTOR
from stepscope.model.session.session import HostInfo

FIXTURES = Fixtures(
    firing=lambda: synced(40 * MS, 30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", REPORT),),
        metrics=("sync_ratio", "host_ratio", "lost_ratio", "syncs_per_step"),
        title=("waits for the device", "float", "40 ms each", "30 %"),
        pipeline_stage="device-to-host",
        remedy="read-less-often",
        basis="modelled",
    ),
    silent=lambda: synced(95 * MS, MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: synced(5 * MS - US, 30 * MS),
    at=lambda: synced(5 * MS, 30 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("wait", "host", "every"), [(60 * MS, MS, 1), (US, 60 * MS, 1), (60 * MS, 30 * MS, 5)])
def test_a_wait_that_loses_nothing_is_none(wait: int, host: int, every: int) -> None:
    """A host with nothing else to do, a result that is there (on CPUs), a value read now and then for a log."""
    assert "HST008" not in codes(synced(wait, host, every=every))


def test_a_copy_on_a_host_without_gpu_is_no_wait() -> None:
    """What a read of a tensor takes on CPUs is its copy: the call had returned with the result."""
    job = synced(40 * MS, 30 * MS)
    job.host = HostInfo()
    assert codes(job) == []


def test_a_wait_beside_slow_python_is_one_finding() -> None:
    """Where samples say what the host does in the same loop, that is the root."""
    job = synced(40 * MS, 30 * MS)
    frames = (Frame(SCRIPT, "main", REPORT), Frame(SCRIPT, "report", 8))
    job.samples([i * PERIOD + 85 * MS for i in range(STEPS)], *frames)
    assert codes(job) == ["HST001"]
