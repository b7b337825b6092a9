"""GEN009 time-in-host-sync: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.fixture import CLAIMS, AnyDetector, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, synced

from stepscope.detectors.base import run
from stepscope.detectors.general.time_in_host_sync import DETECTOR
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: synced(30 * MS, 10 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 45),),
        metrics=("host_sync_ratio", "part at train.py:45"),
        title=("waits for tensors: 30 % of the step time", "main"),
        exposed="prediction",
        pipeline_stage="device-to-host",
        remedy="read-less-often",
    ),
    silent=lambda: synced(MS, 10 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: synced(4 * MS, 10 * MS),
    at=lambda: synced(6 * MS, 10 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def waiting_for_logs(*, callback: bool) -> Job:
    """A fit of Keras on JAX that reads the logs of each batch for 30 of 100 ms."""
    job = Job()
    job.framework("jax", "0.12.0")
    job.framework("keras", "3.15.1")
    job.loop("fit").at(0, 4000 * MS)
    job.execution().every(100 * MS, 40, dur=50 * MS, arg=1)
    where = {"call_file": SCRIPT, "call_line": 45, "call_function": "main"}
    job.call(Kind.HOOK, "on_train_batch_end").every(100 * MS, 40, dur=40 * MS, start=50 * MS)
    job.call(Kind.SYNC, "logs", role="logs", **where).every(100 * MS, 40, dur=30 * MS, start=51 * MS)
    if callback:
        job.callback("Clock.on_train_batch_end").every(100 * MS, 40, dur=MS, start=85 * MS)
    return job


@pytest.mark.parametrize(("callback", "title"), [(True, ", for Clock: 30 %"), (False, "results: 30 %")])
def test_logs_that_keras_reads_have_their_own_remedy(title: str, *, callback: bool) -> None:
    """The callbacks that ask for them are named: the program reads no tensor."""
    detector: AnyDetector = DETECTOR
    (found,), _, _ = run([detector], waiting_for_logs(callback=callback).view())
    assert title in found.title
    assert [remedy.id for remedy in found.remedies] == ["async-callbacks"]
