"""CFG001 starved-cpu: its fixtures, and what looks like it."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import MAIN, MS, Job
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, STEPS, pulled, shared_machine, train_loop

from stepscope.causes.system import contention
from stepscope.detectors.system.starved_cpu import DETECTOR
from stepscope.tables.records import CHILD, GROUP

FIXTURES = Fixtures(
    firing=lambda: shared_machine(1.0),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(),
        metrics=(
            "lost_ratio",
            "wanted_cores",
            "available_cores",
            "got_cores",
            "others_cores",
            "steal_cores",
            "throttled_cores",
        ),
        title=("other processes take 1 CPU (python3 archive.py)", "1 of the 2 CPUs"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="separate-cpu",
        basis="modelled",
    ),
    silent=lambda: shared_machine(0.05),
    not_applicable=lambda: train_loop(80 * MS),
    missing="CPU samples of the host during steady steps",
    below=lambda: shared_machine(0.29, got=1.7),
    at=lambda: shared_machine(0.31, got=1.69),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_starved_job_is_not_input_bound() -> None:
    """What a neighbour takes from the input is not the input's: the wait shrinks by the share of CPUs lost."""
    job = pulled(20 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("/usr/bin/stress", cores=1.0, seconds=10)
    assert codes(job) == ["CFG001"]
    assert codes(pulled(20 * MS)) == ["INP001"]


@pytest.mark.parametrize("threads", [2.0, 14.0])
def test_waiting_that_the_job_makes_itself_is_none(threads: float) -> None:
    """More runnable threads than CPUs, with nobody else on the machine, is not contention."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.95, waiting=threads, others=0.05)
    assert codes(job) == []


def test_a_busy_neighbour_on_a_free_machine_is_none() -> None:
    """A neighbour on CPUs that the job does not want costs nothing."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=16, got=2.0, waiting=0.05, others=8.0)
    assert codes(job) == []


def test_a_quota_is_named() -> None:
    """A cgroup quota that throttles the job is told apart from neighbours."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=4, got=1.0, waiting=2.0, quota=1.0, throttled=0.9)
    (found,) = find(job)
    assert (found.code, found.remedies[0].id) == ("CFG001", "raise-quota")
    assert "quota" in found.title


def test_steal_is_named() -> None:
    """CPU that the hypervisor gives away is told apart from neighbours on the machine."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, steal=1.0)
    (found,) = find(job)
    assert found.code == "CFG001"
    assert "hypervisor" in found.title


def test_a_companion_of_the_job_is_named_with_its_line() -> None:
    """A process that the job started itself is a rival, at the line that started it."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("python evaluate.py", cores=1.0, seconds=10, pid=901, child=True)
    job.child(901, "python evaluate.py", line=77)
    (found,) = find(job)
    assert [(p.file, p.line) for p in found.where] == [("train.py", 77)]
    assert "itself started" in found.title


def test_a_neighbour_is_not_named_for_a_job_that_it_does_not_slow() -> None:
    """A rival on the machine that takes a twentieth of it is ordinary system activity."""
    assert codes(shared_machine(0.1)) == []


@pytest.mark.parametrize("quota", [1.0, 2.0])
def test_a_quota_of_whole_cpus_is_found(quota: float) -> None:
    """A quota of one or two CPUs on a machine of eight, of which the job would use four, is found."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=8, got=quota, waiting=4.0 - quota, quota=quota, throttled=0.9)
    assert [f.code for f in find(job)] == ["CFG001"]


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
    job.threads = msgspec.structs.replace(job.threads, wait_ns=waits)
    return job


def test_threads_of_a_pool_that_wait_beside_a_busy_step_are_none() -> None:
    """What counts is the wait of the thread that makes the step: threads that wait for CPUs while it runs are not the
    step's time, however many they are."""
    assert find(beside_a_pool(90, 10)) == ()
    (found,) = find(beside_a_pool(60, 30))
    assert found.code == "CFG001"
    assert 0.3 <= found.cost.ratio < 0.6


@pytest.mark.parametrize(
    ("child", "runnable", "seen", "whose"),
    [
        (CHILD, 1, True, "processes that the job itself started"),
        (CHILD, 1, False, "processes that the job itself started"),  # a process that it started has started it
        (GROUP, -1, False, "processes started along with the job"),
        (GROUP, -1, True, "processes that the job itself started"),
        (CHILD, -1, True, "processes that the job itself started"),
        (CHILD, -1, False, "processes started along with the job"),  # of an older session: either of both
        (0, -1, True, "other processes"),  # the number of a child that has ended
    ],
)
def test_processes_that_the_job_started_are_told_apart_by_name(
    child: int, runnable: int, seen: bool, whose: str
) -> None:
    """Only its own children are said to be its own: another job of the same script is in its group as well."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("python archive.py", cores=0.6, seconds=10, pid=903, child=child, runnable=runnable)
    job.rival("/usr/bin/indexer", cores=0.4, seconds=10, pid=904)
    if seen:
        job.child(903, "python archive.py", line=77)
    (found,) = find(job)
    assert f"{whose} take 1 CPU (python archive.py" in found.title
    assert found.remedies[0].text.startswith("what the steps do not wait for") is (child != 0)


def test_a_child_whose_threads_were_too_many_is_one_where_others_are_told_apart() -> None:
    """What any row says of the session holds for all of them."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("python archive.py", cores=0.6, seconds=10, pid=903, child=CHILD)
    job.rival("cat", cores=0.1, seconds=1, pid=904, child=GROUP)
    (found,) = find(job)
    assert "processes that the job itself started take 1 CPU (python archive.py)" in found.title


def test_the_remedy_is_for_the_processes_that_the_title_names() -> None:
    """Where a foreign process takes most, a small companion of the job does not make it the job's own."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("/usr/bin/indexer", cores=0.6, seconds=10, pid=904)
    job.rival("python client.py", cores=0.4, seconds=10, pid=903, child=True)
    (found,) = find(job)
    assert "other processes take 1 CPU (indexer)" in found.title
    assert found.remedies[0].text.startswith("run the other processes later")


def idling(call: int, *, waits: int, feed: int = 0) -> Job:
    """A loop that computes ``call`` ms of each 100, waits ``feed`` ms for input, and else does not run; its pool waits.

    ``waits``: percent of the time in which the step's own thread waits for a CPU.
    """
    job = train_loop(call * MS, offset=feed * MS)
    if feed:
        job.nexts().every(PERIOD, STEPS, dur=feed * MS, arg=job.iterator())
    job.machine(10, cpus=2, got=0.1, waiting=1.5, others=1.9)
    job.thread_cpu(10, {MAIN: 2})
    job.threads = msgspec.structs.replace(job.threads, wait_ns=job.threads.at_ns // 100 * waits)
    return job


@pytest.mark.parametrize(
    ("call", "waits", "feed", "found"),
    [
        (3, 3, 0, []),  # sleeps nearly all of the step
        (3, 3, 90, []),  # waits for its input, whose cost is the input's
        (3, 20, 0, ["CFG001"]),  # its own wait is enough
        (60, 3, 0, ["CFG001"]),  # it computes, and the threads that compute lack CPUs
    ],
)
def test_a_thread_that_neither_waits_for_a_cpu_nor_computes_loses_nothing(
    *, call: int, waits: int, feed: int, found: list[str]
) -> None:
    """However many threads of its pool would like to run, and however busy the machine is."""
    seen = [one for one in find(idling(call, waits=waits, feed=feed)) if one.code == "CFG001"]
    assert [one.code for one in seen] == found
    for one in seen:
        assert one.cost.ratio <= (call + waits) / 100 + 0.01


@pytest.mark.parametrize(("cpus", "wait"), [(2, 60), (4, 80)])
def test_a_job_could_not_use_more_cpus_than_there_are(cpus: int, wait: int) -> None:
    """However much of the time its thread waits, it did not lose CPUs that nobody has."""
    job = train_loop(90 * MS)
    job.machine(10, cpus=cpus, got=0.7 * cpus, waiting=cpus, others=0.3 * cpus, quota=0.7 * cpus, throttled=0.9)
    job.thread_cpu(10, {MAIN: 10})
    job.threads = msgspec.structs.replace(job.threads, wait_ns=job.threads.at_ns // 100 * wait)
    contended = job.view().get(contention.build)
    assert contended is not None
    assert contended.got <= contended.could_have <= cpus
