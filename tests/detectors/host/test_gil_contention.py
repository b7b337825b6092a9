"""HST011 gil-contention: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, S
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import CALL, pulled, train_loop
from tests.detectors.lock_jobs import OTHER, SECONDS, beside
from tests.detectors.resource_jobs import gpu_steps

from stepscope.detectors.host.gil_contention import DETECTOR
from stepscope.wire.kinds import LockState

FIXTURES = Fixtures(
    firing=lambda: beside(70),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("words.py", 12), ("train.py", CALL)),
        metrics=(
            "lock_wait_ratio",
            "blocked_ratio",
            "ready_ratio",
            "elsewhere_ratio",
            "looks",
            "holder_cores",
            "samples_on_code",
        ),
        title=("another Python thread holds the GIL", "count", "0.7 CPUs", "60 ms of 100 ms", "60 %"),
        pipeline_stage="forward-backward",
        remedy="move-to-process",
    ),
    silent=lambda: beside(70, waits=0, elsewhere=40),
    not_applicable=lambda: train_loop(80 * MS),
    missing="CPU samples of the host during steady steps",
    below=lambda: beside(9),
    at=lambda: beside(10),
    edges={
        "min_holder_cores": Edge(below=lambda: beside(1, threads=15), at=lambda: beside(2, threads=15)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    "job",
    [
        lambda: beside(70, looks=False),  # an older session, or a kernel that does not tell
        lambda: beside(70, waits=10, elsewhere=2, runs=2),
    ],
)
def test_without_looks_it_is_undecided(job: object) -> None:
    """A busy thread beside the steps may hold the lock or not: without looks that is not known."""
    assert callable(job)
    findings, checked = look(DETECTOR, job())
    assert findings == ()
    assert (checked.outcome, checked.missing) == ("undecided", ("samples of waits for the interpreter lock (GIL)",))


@pytest.mark.parametrize(
    "job",
    [
        lambda: beside(5, looks=False),  # the other thread does next to nothing
        lambda: beside(70, own=95, looks=False),  # our own Python takes the time
    ],
)
def test_what_cannot_be_needs_no_looks(job: object) -> None:
    """Where the kernel's counts leave no room for it, nobody needs to look."""
    assert callable(job)
    assert look(DETECTOR, job())[1].outcome == "clear"


def test_few_looks_that_might_all_be_chance_are_none() -> None:
    """The lower end of the interval must leave something: 18 looks leave nothing, 80 with the same share do."""
    assert look(DETECTOR, beside(70, waits=9, elsewhere=9, runs=0, own=30))[0] == ()
    assert len(look(DETECTOR, beside(70, waits=40, elsewhere=40, runs=0, own=30))[0]) == 1


def test_a_busy_device_has_less_to_win() -> None:
    """No more is claimed than the GPU is idle: it works through its queue while the host waits."""
    costs = []
    for busy in (20, 70, 95):
        findings, _ = look(DETECTOR, beside(70, job=gpu_steps([busy] * 10)))
        costs.append([round(f.cost.ratio, 2) for f in findings])
    assert costs == [[0.6], [0.3], []]


def test_a_pool_is_told_with_its_number() -> None:
    """Threads that run the same function are one holder."""
    job = beside(5)
    job.thread_cpu(SECONDS, {MAIN: 20, OTHER: 5, 21: 40, 22: 30})
    for thread in (21, 22):
        times = [S + i * 200 * MS for i in range(30)]
        job.samples(times, Frame("/job/pool.py", "parse", 5), thread=thread, arg=LockState.WAITS)
    ((found,), _) = look(DETECTOR, job)
    assert "2 other Python threads hold the GIL: parse computes on 0.7 CPUs" in found.title


def test_python_of_the_pipeline_gets_its_remedy() -> None:
    """Threads of a PyDataset that never keep the steps waiting for data may still keep them waiting for the lock."""
    job = beside(70)
    job.python("pydataset", "count", line=12).every(100 * MS, 100, dur=90 * MS, thread=OTHER)
    ((found,), _) = look(DETECTOR, job)
    assert (found.remedies[0].id, found.introduced_stage) == ("input-in-processes", "data preparation")


def test_the_input_says_it_better() -> None:
    """Where the steps wait for what the thread makes, the input's finding about that code is the one that is told."""
    job = beside(70, job=pulled(60 * MS, python=58 * MS, role="generator"), frame=Frame(SCRIPT, "decode", 16))
    assert [f.code for f in look(DETECTOR, job)[0]] == ["HST011"]
    assert [f.code for f in find(job)] == ["INP003"]
