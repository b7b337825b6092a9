"""INP012 input-takes-cpus: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Job, node
from tests.derive.with_steps import view_of
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import MAIN_CALL, PERIOD, STEPS, nothing

from stepscope.detectors.input.input_takes_cpus import DETECTOR


def ahead(input_cpu: int, *, waiting: float = 0.5, others: float = 0.0) -> Job:
    """Steps of 100 ms on one CPU that never wait for input; its map takes ``input_cpu`` of CPU time for a batch."""
    job = Job()
    source = job.dataset("RangeDataset", line=70)
    made = job.dataset("MapDataset", source, line=71, fn_name="decode", fn_file=SCRIPT, fn_line=15, fn_end_line=18)
    iterator = job.iterator(job.dataset("PrefetchDataset", made, line=72), batch=8)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=PERIOD - 2 * MS, start=MS)
    job.nexts().every(PERIOD, STEPS, dur=MS, arg=iterator)
    for batches in (50, 90):
        job.model(
            iterator,
            batches * PERIOD,
            [
                node(1, "Prefetch", 2, elements=batches, busy=0),
                node(2, "Map", 3, elements=batches * 8, busy=batches * input_cpu),
                node(3, "Range", elements=batches * 8, busy=0),
            ],
        )
    job.machine(10, cpus=1, got=1.0, waiting=waiting, others=others)
    return job


FIXTURES = Fixtures(
    firing=lambda: ahead(50 * MS),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", 71), ("train.py", 15)),
        metrics=("input_cpu_ratio", "wanted_cpus", "available_cpus", "part of Map"),
        title=("50 % of the job's CPUs", "Map", "1.5 CPUs are wanted, 1 available"),
        introduced="data preparation",
        exposed="training",
        pipeline_stage="preprocessing",
        remedy="batch-before-map",
        basis="modelled",
    ),
    silent=lambda: ahead(20 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: ahead(29 * MS),
    at=lambda: ahead(31 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("waiting", "others"), [(0.0, 0.0), (0.5, 0.5)], ids=["idle", "starved"])
def test_cpus_that_are_free_or_others(waiting: float, others: float) -> None:
    """Where a CPU is left over, or other processes take it, the input is not what the step waits for."""
    job = ahead(50 * MS)
    job.machine(10, cpus=1, got=0.9 - others, waiting=waiting, others=others)
    assert list(DETECTOR.detect(view_of(job), DETECTOR.params)) == []
