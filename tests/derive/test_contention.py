"""What others took of the CPUs that the job wanted: only that, and never more than it could have used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import MS, Job, S

from stepscope.derive.contention import Contention

PERIOD = 100 * MS


def stepped() -> Job:
    """Steps over ten seconds."""
    job = Job()
    job.step().every(PERIOD, 101, dur=0)
    return job


def measured(job: Job) -> Contention:
    """Who used the CPUs."""
    found = job.view().contention
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
    assert job.view().contention is None


def test_samples_of_another_process_say_nothing() -> None:
    """The process that makes the steps must be among those sampled."""
    job = stepped()
    job.machine(10)
    job.processes.pid[:] = 12345
    assert job.view().contention is None


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
    assert (second.child, second.started) == (False, None)
