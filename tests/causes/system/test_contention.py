"""What others took of the CPUs that the job wanted: only that, and never more than it could have used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import MS, Job, S

from stepscope.causes.system import contention
from stepscope.causes.system.contention import Contention, StepThread

PERIOD = 100 * MS


def stepped() -> Job:
    """Steps over ten seconds."""
    job = Job()
    job.step().every(PERIOD, 101, dur=0)
    return job


def measured(job: Job) -> Contention:
    """Who used the CPUs."""
    found = job.view().get(contention.build)
    assert found is not None
    return found


def on(**rates: float) -> Contention:
    """On a machine of two CPUs with these rates."""
    job = stepped()
    job.machine(10, cpus=2, **rates)
    return measured(job)


@pytest.mark.parametrize(
    ("rates", "lost", "ratio"),
    [
        ({"got": 1.0, "waiting": 1.0, "others": 1.0}, 1.0, 0.5),  # a neighbour takes what the job wants
        ({"got": 1.0, "waiting": 0.0, "others": 1.0}, 0.0, 0.0),  # the job wants no more than it has
        ({"got": 2.0, "waiting": 6.0, "others": 0.0}, 0.0, 0.0),  # it waits for itself
        ({"got": 1.9, "waiting": 6.0, "others": 0.1}, 0.1, 0.05),  # nearly so
        ({"got": 0.5, "waiting": 0.5, "others": 1.5}, 0.5, 0.5),  # half of the one thread that it has
        ({"got": 1.0, "waiting": 0.25, "others": 0.9}, 0.25, 0.2),  # no more than it waited
        ({"got": 1.0, "waiting": 3.0, "others": 0.2}, 0.2, 0.1),  # no more than others used
        ({"got": 1.0, "waiting": 1.0, "steal": 0.6}, 0.6, 0.3),  # the hypervisor
        ({"got": 1.0, "waiting": 1.0, "quota": 1.0, "throttled": 0.8}, 1.0, 0.5),  # the cgroup
        ({"got": 1.0, "waiting": 1.0, "quota": 4.0, "throttled": 0.0}, 0.0, 0.0),  # a quota that does not bind
    ],
)
def test_lost_cpus(rates: dict[str, float], lost: float, ratio: float) -> None:
    """Lost are the CPUs wanted and not got, at most what others withheld."""
    found = on(**rates)
    assert found.lost == pytest.approx(lost)
    assert found.lost_ratio == pytest.approx(ratio)


_CPUS = st.floats(0, 16)


@given(got=_CPUS, waiting=_CPUS, others=_CPUS, steal=_CPUS)
def test_no_more_is_lost_than_was_withheld(got: float, waiting: float, others: float, steal: float) -> None:
    """Whatever the rates: nothing negative, no more than withheld, than wanted, than there is; a share of 0 to 1."""
    found = on(got=got, waiting=waiting, others=others, steal=steal)
    assert 0 <= found.lost <= others + steal + 1e-6
    assert found.lost <= waiting + 1e-6
    assert found.lost <= 2 + 1e-6
    assert 0 <= found.lost_ratio <= 1
    assert found.could_have >= found.got


def test_rates_are_of_the_steady_steps() -> None:
    """What happened before the first step is not counted."""
    job = Job()
    job.step().every(PERIOD, 101, dur=0, start=20 * S)
    job.machine(30, cpus=2, got=1.0, waiting=1.0, others=1.0)
    columns = job.hosts.others_cpu_ns
    columns[:] = [S * 2 * min(second, 20) for second in range(31)]
    assert measured(job).others == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("seconds", [0, 1])
def test_too_few_samples_say_nothing(seconds: int) -> None:
    """Less than two samples, or a second and a half, is no rate."""
    job = stepped()
    job.machine(seconds)
    assert job.view().get(contention.build) is None


def test_samples_of_another_process_say_nothing() -> None:
    """The process that makes the steps must be among those sampled."""
    job = stepped()
    job.machine(10)
    job.processes.pid[:] = 12345
    assert job.view().get(contention.build) is None


def test_a_host_that_does_not_tell_counts_as_nothing() -> None:
    """-1 is no counter: what the host does not tell is no loss."""
    job = stepped()
    job.machine(10, got=1.0, waiting=1.0)
    job.hosts.steal_ns[:] = -1
    job.hosts.others_cpu_ns[:] = -1
    assert measured(job).lost == 0


def test_rivals_by_command() -> None:
    """Processes of one command count together, the busiest command first; children of the job are told."""
    job = stepped()
    job.machine(10, got=1.0, waiting=1.0, others=1.0)
    job.rival("python archive.py", cores=0.25, seconds=10, pid=901)
    job.rival("python archive.py", cores=0.25, seconds=10, pid=902)
    job.rival("python evaluate.py", cores=0.75, seconds=10, pid=903, child=True)
    job.child(903, "python evaluate.py", line=77)
    first, second = measured(job).rivals
    assert (first.name, round(first.cores, 6), first.child) == ("python evaluate.py", 0.75, True)
    assert first.started is not None
    assert first.started.line == 77
    assert (second.name, round(second.cores, 6), second.pids) == ("python archive.py", 0.5, (901, 902))
    assert (second.child, second.companion, second.started) == (False, False, None)


def beside(at_once: float | None, *, cpus: float = 2.0, got: float = 0.78, slowed: float = 0.0) -> Contention:
    """Steps whose thread waits a tenth of the time and else mostly for two busy threads of a pool."""
    thread = StepThread(run=0.07, wait=0.1, at_once=at_once, slowed=slowed)
    rates = {"got": got, "wanted": 1.76, "others": 1.2, "steal": 0.0, "throttled": 0.0}
    return Contention(span_ns=10 * S, available=cpus, rivals=(), thread=thread, **rates)


@pytest.mark.parametrize(
    ("at_once", "lost"),
    [
        (1.0, 0.1 + 0.83 - 0.71),  # one op after the other: what they did not run was lost
        (2.0, 0.1 + 0.83 - 0.71 / 2),  # work for two
        (None, 0.1 + 0.83 - 0.71 * 3 / 4),  # not known: half way
    ],
)
def test_work_that_needs_one_cpu_loses_less(at_once: float | None, lost: float) -> None:
    """Two threads that wait at once lose one time: how much depends on the CPUs that their work can use."""
    found = beside(at_once)
    assert found.lost_ratio == pytest.approx(lost)
    assert found.low <= 0.22 + 1e-9
    assert found.high >= 0.575 - 1e-9
    assert found.could_have == pytest.approx(found.got / (1 - lost))


def test_the_fastest_steps_show_what_the_others_lost() -> None:
    """Steps of a scheduler's slice: what the fastest took is what a step takes, within what the counters allow."""
    assert beside(1.0, slowed=0.3).lost_ratio == pytest.approx(0.3)
    assert beside(1.0, slowed=0.9).lost_ratio == beside(2.0).lost_ratio
    assert beside(2.0, slowed=0.1).lost_ratio == beside(2.0).lost_ratio


@given(run=st.floats(0, 1), wait=st.floats(0, 1), got=_CPUS, waiting=_CPUS, others=_CPUS, at_once=st.floats(1, 16))
def test_a_step_loses_no_more_than_its_time(
    run: float, wait: float, got: float, waiting: float, others: float, at_once: float
) -> None:
    """Whatever the rates: a share of 0 to 1, within its interval, and no more than others used or threads waited."""
    run = min(run, got)
    wait = min(wait, waiting, 1 - run)
    thread = StepThread(run=run, wait=wait, at_once=at_once)
    rates = {"got": got, "wanted": got + waiting, "others": others, "steal": 0.0, "throttled": 0.0}
    found = Contention(span_ns=10 * S, available=16.0, rivals=(), thread=thread, **rates)
    assert 0 <= found.low <= found.lost_ratio <= found.high <= 1
    assert found.lost_ratio <= min(others, waiting) + 1e-6


@pytest.mark.parametrize(
    ("got", "wanted", "others", "thread", "lost"),
    [
        # five threads want two CPUs: they wait for each other, and alone they would have 2 CPUs for 1.3 now
        (1.3, 4.9, 0.6, StepThread(run=0.27, wait=0.72, computing=0.9), 0.35),
        # one of two threads that meet shares its CPU: the other one idles as long, and the step takes twice the time
        (1.0, 1.5, 0.5, StepThread(run=0.5, wait=0.5), 0.5),
    ],
    ids=["crowd", "meeting"],
)
def test_alone_a_job_has_no_more_than_all_cpus(
    got: float, wanted: float, others: float, thread: StepThread, lost: float
) -> None:
    """The saving is bounded by the work that its threads do, and not by what others had: CPUs may be idle meanwhile."""
    rest = {"steal": 0.0, "throttled": 0.0}
    found = Contention(
        span_ns=10 * S, available=2.0, got=got, wanted=wanted, others=others, rivals=(), thread=thread, **rest
    )
    assert found.lost_ratio == pytest.approx(lost)
    assert found.high >= lost
