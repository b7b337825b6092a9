"""CFG003 oversubscribed-threads: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job
from tests.detectors.asking import codes, look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import LOOP_LINE, train_loop
from tests.detectors.trend_jobs import crowded

from stepscope.detectors.system.oversubscribed_threads import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: crowded(40),
    expected=Expected(
        severity="medium",
        cost=0.192,
        where=(("train.py", LOOP_LINE + 1),),
        metrics=(
            "runnable_threads",
            "sharing_threads",
            "available_cores",
            "switches_per_cpu_second",
            "python_ratio",
        ),
        title=("oversubscribed threads", "40 threads share 2 CPUs", "40 are runnable", "19 %"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="threads-as-cpus",
        basis="modelled",
    ),
    silent=lambda: crowded(40, runnable=2.5),
    not_applicable=lambda: train_loop(80 * MS),
    missing="CPU samples of the host during steady steps",
    below=lambda: crowded(40, runnable=7.99),
    at=lambda: crowded(40, runnable=8.01),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_own_threads_of_python_are_named() -> None:
    """A pool of the job's own is named by the code that runs in it, and its size is the first remedy."""
    (found,) = look(crowded(40, own=True))[0]
    assert "many in augment" in found.title
    assert found.where[-1].file == "loader.py"
    assert found.remedies[0].id == "smaller-pool"


@pytest.mark.parametrize("job", [crowded(6), crowded(40, switches=5_000)])
def test_pools_of_usual_size_and_cost_are_none(job: Job) -> None:
    """A few threads more than CPUs, or many that seldom switch, cost nothing."""
    assert codes(job) == []


def test_neighbours_make_no_crowd() -> None:
    """Two threads that wait long because others use the CPUs are starved, not many."""
    job = crowded(2, runnable=2.0)
    job.machine(10, cpus=2, got=0.6, waiting=1.4, others=1.4)
    assert codes(job) == ["CFG001"]
