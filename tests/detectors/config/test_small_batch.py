"""CFG002 small-batch: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, SCRIPT, US, Job
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import read_turns
from tests.detectors.jobs import PERIOD, STEPS, keras_fit, small_batches
from tests.detectors.traced_jobs import STEP, TRACED, holding

from stepscope.detectors.config.small_batch import DETECTOR

FIXTURES = Fixtures(
    firing=small_batches,
    expected=Expected(
        severity="high",
        cost=0.9 * (1 - 4 / 128) + 0.1 * (1 - 4 / 128),
        where=(("train.py", 50),),
        metrics=("fixed_ratio", "ns_per_op", "batch", "batches"),
        title=("small batches of 4 samples", "of each step of 100 ms is overhead"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="larger-batch",
        basis="modelled",
    ),
    silent=lambda: small_batches(ns_per_op=50_000),
    not_applicable=lambda: keras_fit(20 * MS),
    missing="traces of tf.functions",
    below=lambda: small_batches(9),
    at=lambda: small_batches(8),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("size", "batches"), [(32, 4_000), (4, 20), (0, 4_000)])
def test_batches_that_cannot_be_larger_are_none(size: int, batches: int) -> None:
    """Usual batches, a data set of a few, and batches of unknown size are no small batches."""
    assert "CFG002" not in codes(small_batches(size, batches=batches))


@pytest.mark.parametrize(("size", "batches", "ns_per_op"), [(1, 4_000, 2_000), (1, 1, 2_000), (64, 4_000, 2_000)])
def test_one_predict_on_tiny_batches(size: int, batches: int, ns_per_op: int) -> None:
    """One call of predict that cuts its array into rows; not many calls of one row each, nor usual batches."""
    job = Job()
    job.loop("predict", line=50).at(0, STEPS * PERIOD)
    job.execution("predict").every(PERIOD, STEPS, dur=90 * MS, arg=size)
    job.trace(0, MS, cause="first", owner="keras", function="one_step_on_data", nodes=90 * MS // ns_per_op)
    job.batch(0, role="predict", size=size, steps=batches)
    found = [f for f in find(job) if f.code == "CFG002"]
    assert bool(found) == (size == 1 and batches > 1)
    for one in found:
        assert (one.introduced_stage, one.exposed_stage) == ("prediction", "prediction")
        assert [(p.file, p.line) for p in one.where] == [("train.py", 50)]
        assert [r.id for r in one.remedies] == ["larger-batch"]


@pytest.mark.parametrize("updates", [0, 4])
def test_one_observation_at_a_time_is_none(updates: int) -> None:
    """An environment or a queue of requests gives one sample: no pipeline makes batches that could be larger."""
    job = Job()
    job.trace(0, MS, cause="first", function="train_step", file=SCRIPT, line=10, nodes=40_000, updates=updates)
    job.function().every(PERIOD, STEPS, dur=90 * MS, arg=1)
    assert codes(job) == []


def test_a_custom_loop_over_small_batches_is_found_at_its_batch() -> None:
    """Where the program's own dataset makes the batches, its line is the place."""
    job = Job()
    dataset = job.dataset("BatchDataset", line=72, batch=4)
    job.trace(0, MS, cause="first", function="train_step", file=SCRIPT, line=10, nodes=90_000, updates=4)
    job.function().every(2 * PERIOD, 200, dur=180 * MS, start=MS)
    job.nexts().every(2 * PERIOD, 200, dur=US, arg=job.iterator(dataset, batch=4))
    found = [f for f in find(job) if f.code == "CFG002"]
    assert [(p.file, p.line) for f in found for p in f.where] == [("train.py", 72)]


@pytest.mark.parametrize(("turns", "found"), [(80, []), (8, ["CFG002"])])
def test_ops_of_an_unrolled_loop_are_not_of_the_batch(turns: int, found: list[str]) -> None:
    """A Python loop has made most ops of the step: a larger batch would have them as well."""
    job = Job()
    job.loop().at(0, STEPS * 4 * MS)
    job.execution().every(4 * MS, STEPS, dur=3 * MS)
    job.trace(0, MS, cause="first", owner="keras", function="one_step_on_data", nodes=1_000, updates=9)
    job.batch(0, size=4, steps=4_000)
    read_turns(job, turns)
    assert [code for code in codes(job) if code == "CFG002"] == found


@pytest.mark.parametrize(("around", "found"), [(60_000.0, ["CFG002"]), (2_000.0, [])])
def test_an_op_trace_tells_scheduling_from_work_on_a_slow_machine(around: float, found: list[str]) -> None:
    """Where each op takes 9 us of the call, its graph cannot tell whether it computes or is scheduled."""
    made = Maker()
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.span(made.main, "ExecutorState::Process", at + 10, around)
        made.op(made.main, "loss:Mul", at + 80_000, 10_000)
    job = holding(made.trace())
    job.loop().at(0, 4_000 * MS)
    job.trace(0, MS, cause="first", owner="keras", function="one_step_on_data", nodes=10_000, updates=9)
    job.batch(0, size=4, steps=4_000)
    assert [code for code in codes(job) if code == "CFG002"] == found
