"""INP016 slow-iterator-deletion: its fixtures, and waits that look like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.detectors.asking import find
from tests.detectors.deletion_jobs import EXECUTE, FIT, WAKES, standing
from tests.detectors.fixture import CLAIMS, Build, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing

from stepscope.detectors.input.slow_iterator_deletion import DETECTOR
from stepscope.wire.kinds import Flag, Kind

FIXTURES = Fixtures(
    firing=standing,
    expected=Expected(
        severity="medium",
        cost=0.199,
        where=(("train.py", FIT),),
        metrics=("deletion_ratio", "deletions", "longest_ns", "slept_ns"),
        title=("deleting a tf.data iterator waits 3.98 s for its autotuning, once: 20 % of the run",),
        pipeline_stage="none",
        remedy="one-iterator-for-all-epochs",
        per_step=25 * MS,
    ),
    silent=lambda: standing(ends=WAKES + 2 * S),
    not_applicable=nothing,
    missing="steps",
    below=lambda: standing(after=1240),
    at=lambda: standing(after=1210),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_wait_within_a_step_is_a_share_of_the_steps() -> None:
    """A wait of fifteen steps is still part of one."""
    found = next(one for one in find(standing(wait=1500 * MS)) if one.code == "INP016")
    assert found.title.endswith("of the time")
    assert found.pipeline_stage == "preprocessing"


def test_the_end_of_a_fit_is_told_with_the_remedy_that_spares_it() -> None:
    """No iterator takes the place of the last one, so a repeated dataset would wait there, too. It comes once, however
    long the run is, and so is information.
    """
    job = standing(exchanged=False, after=0)
    job.samples([WAKES + 50 * MS], Frame(SCRIPT, "main", FIT + 1), dur=50 * MS)
    (found,) = (one for one in find(job) if one.code == "INP016")
    assert [one.id for one in found.remedies] == ["without-autotuning", "one-iterator-for-all-epochs"]
    assert found.severity == "info"


def test_a_dataset_that_keras_made_gets_the_remedy_that_fits() -> None:
    """Who gives fit a generator has no dataset whose options could be set, nor one to repeat."""
    job = standing(exchanged=False, after=0, line=FIT)
    job.samples([WAKES + 50 * MS], Frame(SCRIPT, "main", FIT + 1), dur=50 * MS)
    (found,) = (one for one in find(job) if one.code == "INP016")
    assert [one.id for one in found.remedies] == ["own-dataset-without-autotuning"]


def slept(job: Job) -> list[float]:
    """Sleeps of the tuning thread before the waits that are found, in seconds."""
    metrics = [e for f in find(job) if f.code == "INP016" for e in f.evidence]
    return [e.value / 1e9 for e in metrics if e.metric == "slept_ns"]


@pytest.mark.parametrize("ends", [5.11, 10.23, 20.47, 40.95, 81.91, 141.91])
def test_the_times_at_which_the_tuning_thread_wakes(ends: float) -> None:
    """10 ms, then twice as long each time, at most a minute; measured with TensorFlow 2.21: 9.46 s into 11 s more."""
    wait = int(ends * S) // 2
    assert slept(standing(ends=int(ends * S), wait=wait)) == [pytest.approx(ends)]
    assert slept(standing(ends=int(ends * S) + 800 * MS, wait=wait)) == []


def test_elements_come_once_what_pulls_them_was_traced() -> None:
    """Keras makes the iterator, traces its step for 2 s, and then pulls: the tuning thread begins there."""
    assert slept(standing(traced=2 * S)) == [pytest.approx(10.23)]
    assert slept(standing(traced=2 * S, ends=WAKES - 2 * S)) == []


def test_a_loop_that_pulls_before_it_calls_has_its_first_element_at_once() -> None:
    """``for batch in dataset: step(batch)`` pulls, and then traces the step: the sleeps began with the pull."""
    job = standing(traced=2 * S, ends=WAKES - 2 * S)
    job.call(Kind.NEXT, "iterator").at(0, MS)
    assert slept(job) == [pytest.approx(10.23)]


def test_an_iterator_that_was_made_later() -> None:
    """Its sleeps count, not the time since the job's start."""
    assert slept(standing(made=3 * S)) == [pytest.approx(10.23)]
    assert slept(standing(made=3 * S, ends=WAKES + S)) == []


@pytest.mark.parametrize(
    "build",
    [
        lambda: standing(flags=int(Flag.CPU)),
        lambda: standing(call="sleep"),
        lambda: standing(exchanged=False),
        lambda: standing(called=True),
        lambda: standing(leaf=EXECUTE),
        lambda: standing(wait=600 * MS),
    ],
    ids=["computes", "sleeps", "same-iterator", "in-a-call", "in-an-op", "short"],
)
def test_waits_for_something_else(build: Build) -> None:
    """Each of them ends at the same time as a tuning thread's sleep, and is something else."""
    assert slept(build()) == []


def test_a_loop_of_the_users() -> None:
    """The iterator of a for statement is let go of on the statement's line."""
    assert slept(standing(leaf=Frame(SCRIPT, "main", FIT + 2))) == [pytest.approx(10.23)]


def test_a_deletion_that_python_runs_as_an_op() -> None:
    """TensorFlow 2.15 deletes by an op that Python calls."""
    deletes = Frame(
        "/usr/lib/python3/site-packages/tensorflow/python/ops/gen_dataset_ops.py", "delete_iterator", 1, own=False
    )
    assert slept(standing(leaf=deletes)) == [pytest.approx(10.23)]
