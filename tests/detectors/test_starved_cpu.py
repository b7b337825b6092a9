"""Whose waits for a CPU count, and where a starved machine stands in the report."""

from __future__ import annotations

import dataclasses

from tests.derive.sessions import MAIN, MS, Job
from tests.detectors.jobs import pulled, train_loop

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.report.finding import Finding


def find(job: Job) -> tuple[Finding, ...]:
    """What all detectors say; none may fail."""
    findings, _, failures = run(ALL, job.view())
    assert failures == ()
    return findings


def test_what_the_user_can_change_comes_before_the_machine() -> None:
    """Where both are left, the input stands first though the machine costs more; each keeps its cost and severity. A
    companion that the job's own line starts is the user's, too, and stands where its cost puts it."""
    job = pulled(60 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    told, machine = find(job)
    assert (told.code, machine.code, machine.severity) == ("INP001", "CFG001", "high")
    assert machine.cost.ratio > told.cost.ratio
    job.rival("python evaluate.py", cores=1.0, seconds=10, pid=903, child=True)
    job.child(903, "python evaluate.py", line=77)
    assert [f.code for f in find(job)] == ["CFG001", "INP001"]


def beside_a_pool(run_percent: int, wait_percent: int) -> Job:
    """The step's thread runs and waits so long; the others of its process wait for one and a half CPUs."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=0.95, waiting=1.5, others=1.05)
    job.thread_cpu(10, {MAIN: run_percent})
    waits = job.threads.at_ns // 100 * wait_percent
    job.threads = dataclasses.replace(job.threads, wait_ns=waits)
    return job


def test_threads_of_a_pool_that_wait_beside_a_busy_step_are_none() -> None:
    """What counts is the wait of the thread that makes the step: threads that wait for CPUs while it runs are not the
    step's time, however many they are."""
    assert find(beside_a_pool(90, 10)) == ()
    (found,) = find(beside_a_pool(60, 30))
    assert found.code == "CFG001"
    assert 0.3 <= found.cost.ratio < 0.6


def test_processes_that_the_job_started_are_told_apart_by_name() -> None:
    """Only its own children are said to be its own."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("python archive.py", cores=0.6, seconds=10, pid=903, child=True)
    job.rival("/usr/bin/indexer", cores=0.4, seconds=10, pid=904)
    (found,) = find(job)
    assert "processes that the job started itself (python archive.py) take" in found.title


def test_the_remedy_is_for_the_processes_that_the_title_names() -> None:
    """Where a foreign process takes most, a small companion of the job does not make it the job's own."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("/usr/bin/indexer", cores=0.6, seconds=10, pid=904)
    job.rival("python client.py", cores=0.4, seconds=10, pid=903, child=True)
    (found,) = find(job)
    assert "other processes (indexer) take" in found.title
    assert "companion" not in found.remedies[0].text
