"""A cluster on one machine: its tasks are no rivals of each other, and waiting for one is nobody's slow code."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.detectors.jobs import MAIN_CALL, PERIOD, STEPS, train_loop
from tests.detectors.trend_jobs import crowded as many_threads
from tests.detectors.trend_jobs import stalled

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.cluster import ServerStarted
from stepscope.tables.findings import Checked, Finding
from stepscope.wire.kinds import Kind

TF = "/usr/lib/python3/site-packages/tensorflow/python"
TASK = 2
"""As the sampler writes it."""


def find(job: Job) -> tuple[tuple[Finding, ...], dict[str, Checked]]:
    """What all detectors say, and what became of each."""
    findings, checked, failures = run(ALL, job.view())
    assert failures == ()
    return findings, {c.detector: c for c in checked}


def crowded(*, child: int, command: str = "/usr/bin/python train.py --task 1", server: bool = True) -> Job:
    """A starved job of a cluster beside a process that takes a CPU."""
    job = train_loop(80 * MS)
    job.command = ("/usr/bin/python", "/job/train.py")
    if server:
        job.event(ServerStarted(job="worker", jobs={"ps": 1, "worker": 2}))
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival(command, cores=1.0, seconds=10, child=child)
    return job


@pytest.mark.parametrize(
    "job",
    [
        lambda: crowded(child=TASK, server=False, command="python ps.py"),  # known by TF_CONFIG or its connections
        lambda: crowded(child=TASK | 1),  # and started by the same script
        lambda: crowded(child=0),  # the same script, in a cluster
        lambda: crowded(child=1),
    ],
)
def test_a_task_of_the_cluster_is_no_rival(job: object) -> None:
    """What a task of the job's own cluster computes is the job's work: no contention, no advice to start it later."""
    assert callable(job)
    findings, _ = find(job())
    assert [f.code for f in findings] == []


@pytest.mark.parametrize(("child", "who"), [(1, "started along with the job"), (0, "other processes")])
def test_a_companion_of_a_cluster_is_a_rival(child: int, who: str) -> None:
    """Another program beside a cluster's task is one all the same, and so is a copy of a job that is no cluster."""
    for job in (crowded(child=child, command="python archive.py"), crowded(child=child, server=False)):
        findings, _ = find(job)
        assert [f.code for f in findings] == ["CFG001"]
        assert who in findings[0].title


def test_a_forked_process_of_the_script_is_no_task() -> None:
    """Multiprocessing's children have the script's command line and may do anything: one that computes is a rival."""
    job = crowded(child=1)
    job.child(900, "Process archive", line=77)
    findings, _ = find(job)
    assert [f.code for f in findings] == ["CFG001"]


@pytest.mark.parametrize(("tasks", "named"), [(0, "as many threads as CPUs"), (1, "the 2 tasks of the cluster")])
def test_tasks_on_one_host_share_its_cpus(tasks: int, named: str) -> None:
    """Too many threads in a task beside another one: the advice is about cores for each task, not for all of them."""
    job = many_threads(40)
    for task in range(tasks):
        job.rival("python ps.py", cores=0.5, seconds=1, child=TASK, pid=900 + task)
        job.rival("python ps.py", cores=0.5, seconds=10, pid=900 + task)
    found = next(f for f in find(job)[0] if f.code == "CFG003")
    assert named in found.remedies[0].text
    assert not [f for f in find(job)[0] if f.code == "CFG001"]


def waiting(*below: Frame, exit_code: int = 0, steps: int = STEPS) -> Job:
    """Forty seconds in which ``<module>`` is inside of something of TensorFlow's, then the steps."""
    job = Job(exit_code=exit_code)
    user = Frame(SCRIPT, "<module>", 24)
    job.samples([i * 100 * MS for i in range(400)], user, *below, dur=100 * MS)
    job.call(Kind.SESSION_RUN, "train", **MAIN_CALL).every(PERIOD, steps, dur=99 * MS, start=40 * S)
    job.samples([40 * S + i * PERIOD + MS for i in range(steps)], user._replace(line=25), dur=50 * MS)
    return job


SLEEPS = Frame(f"{TF}/training/session_manager.py", "SessionManager.wait_for_session", 478, own=False)
MEETS = (
    Frame(f"{TF}/distribute/collective_all_reduce_strategy.py", "CollectiveAllReduceExtended.__init__", 300, own=False),
    Frame(f"{TF}/eager/context.py", "Context.ensure_initialized", 745, own=False),
)
JOINS = Frame(f"{TF}/training/server_lib.py", "Server.join", 130, own=False)


@pytest.mark.parametrize("below", [(SLEEPS,), MEETS, (JOINS,)])
def test_waiting_for_the_cluster_is_no_slow_code(below: tuple[Frame, ...]) -> None:
    """Until the chief, the server or all peers are there, nothing is initialised slowly: there is no advice for it."""
    findings, _ = find(waiting(*below))
    assert [f.code for f in findings] == []


def test_own_work_in_the_same_place_is_slow_code() -> None:
    """What the user's own line takes that long is said as before, and so is a session manager that restores."""
    for below in ((), (Frame(f"{TF}/training/saver.py", "Saver.restore", 1400, own=False),)):
        findings, _ = find(waiting(*below))
        assert [f.code for f in findings] == ["INI001"]


def test_a_task_that_waits_to_the_end_is_not_told_to_hang() -> None:
    """A worker that was stopped while it waited for its chief is undecided: whether the chief runs is not known."""
    job = waiting(SLEEPS, exit_code=-15, steps=10)
    end = 41 * S
    job.samples([end + i * 100 * MS for i in range(1200)], Frame(SCRIPT, "<module>", 24), SLEEPS, dur=100 * MS)
    job.ended_ns = end + 120 * S
    job.machine(161, cpus=2, got=0.0)
    findings, checked = find(job)
    assert [f.code for f in findings if f.code == "HNG001"] == []
    assert checked["HNG001"].outcome == "undecided"
    assert "another task of its cluster" in checked["HNG001"].hint


@pytest.mark.parametrize("child", [0, TASK])
def test_a_stall_is_not_laid_to_a_task_of_the_cluster(child: int) -> None:
    """A process that is busy in the stalls is named as their reason, unless it is a task of the job's own cluster."""
    job = stalled(500 * MS, part=Kind.FUNCTION)
    job.machine(12)
    job.rival("/usr/bin/python ps.py", cores=0.0, seconds=12, child=child)
    starts = sorted(r.start_ns for r in job.records if r.kind == Kind.FUNCTION and r.name == 1)
    stalls = {starts[n] // S + 1 for n in range(10, STEPS - 1, 10)}
    for row in job.rivals:
        row["cpu_ns"] = round(1.5 * S) if row["at_ns"] // S in stalls else S // 100
    findings, _ = find(job)
    (found,) = (f for f in findings if f.code == "HST009")
    assert ("ps.py" in found.title) is (child == 0)
