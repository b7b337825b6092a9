"""INP007 traced-input-wait: its fixtures, and what looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.op_traces import Maker
from tests.derive.sessions import Job
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import nothing
from tests.detectors.traced_jobs import TRACE, fed, holding, loaded, made_by_python, served

from stepscope.detectors.input.traced_input_wait import DETECTOR
from stepscope.tables.findings import Finding

FIXTURES = Fixtures(
    firing=lambda: fed(60_000, work=0.95, kind="PyFunc", measured=False),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(),
        metrics=("input_wait_ratio", "stage_ns_per_batch", "python_ratio", "traced_steps"),
        title=("Map stage", "95 % of it in Python", "60 %"),
        introduced="data preparation",
        exposed="unknown",
        pipeline_stage="preprocessing",
        remedy="use-tensorflow-ops",
    ),
    silent=lambda: fed(2_000, work=0.95, kind="PyFunc", measured=False),
    not_applicable=nothing,
    missing=TRACE,
    below=lambda: fed(14_900, work=0.95, kind="PyFunc", measured=False),
    at=lambda: fed(15_100, work=0.95, kind="PyFunc", measured=False),
    edges={
        "min_python_ratio": Edge(
            below=lambda: fed(60_000, work=0.49, kind="PyFunc", measured=False),
            at=lambda: fed(60_000, work=0.51, kind="PyFunc", measured=False),
            shows="use-tensorflow-ops",
        ),
        "min_steps": Edge(below=lambda: loaded(60_000, steps=3), at=lambda: loaded(60_000, steps=4)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


WAIT = 40_000.0


def _found(job: Job) -> list[Finding]:
    return list(look(DETECTOR, job)[0])


@pytest.mark.parametrize("wait", [30_000, 90_000])
def test_a_service_is_given_workers(wait: float) -> None:
    """Its stage has no argument for threads: the time is that of the workers."""
    (finding,) = _found(served(wait))
    assert finding.title.startswith("the tf.data service hands over a batch every ")
    assert [remedy.id for remedy in finding.remedies] == ["service-workers", "prefetch"]


@pytest.mark.parametrize(
    ("stage", "advised"),
    [
        ("Generator", "use-tf-data-map"),
        ("TFRecord", "parallel-reads"),
        ("FlatMap", "parallel-interleave"),
        ("BatchV2", "parallel-batch"),
        ("Map", "parallel-map"),
        ("Filter", "work-in-a-map"),
    ],
)
def test_a_stage_is_given_threads_only_if_it_can_have_them(stage: str, advised: str) -> None:
    """A generator, a filter or a reader takes no num_parallel_calls."""
    (finding,) = _found(served(60_000, stage))
    assert [remedy.id for remedy in finding.remedies] == [advised, "prefetch"]


@pytest.mark.parametrize(
    ("works", "maker"), [(0.1, "$data.py:9 make"), (0.9, "$resource_tracker.py:161 _check_alive"), (0.0, "$a.py:1 f")]
)
def test_who_hardly_works_makes_no_batches(works: float, maker: str) -> None:
    """A wait that nobody in the trace explains is neither found nor clear."""
    findings, checked = look(DETECTOR, made_by_python(WAIT, works=works, maker=maker))
    assert (list(findings), checked.outcome) == ([], "undecided")
    assert "does not show what makes its batches" in checked.hint


def test_who_works_for_most_of_the_wait_makes_them() -> None:
    (finding,) = _found(made_by_python(WAIT, works=0.9))
    assert "meanwhile make (data.py:9) works for 90 % of the wait" in finding.title


def test_a_loader_without_workers_is_told_with_its_time() -> None:
    (finding,) = _found(loaded(WAIT))
    assert "makes each batch in the training process: its next takes 40 ms per batch" in finding.title
    assert finding.cost.ratio == pytest.approx(0.4, abs=0.01)
    assert finding.severity == "high"
    assert {e.metric: e.value for e in finding.evidence}["in_process_ratio"] == 1
    assert "num_workers" in finding.remedies[0].text
    assert finding.cause == "API: not using efficient API"


def test_a_loader_with_workers_lacks_some_or_they_are_slow() -> None:
    """Another cause and another remedy: the work is done elsewhere already."""
    (finding,) = _found(loaded(WAIT, workers=True))
    assert "too few or too slow workers" in finding.title
    assert finding.remedies[0].id == "more-loader-workers"
    assert finding.cause == "Data: inefficient data preprocessing"


@pytest.mark.parametrize(("wait", "count"), [(14_900.0, 0), (15_100.0, 1), (1_000.0, 0)])
def test_a_loader_that_is_hardly_waited_for_is_none(wait: float, count: int) -> None:
    """At the threshold, and a loader with its batch ready."""
    assert len(_found(loaded(wait))) == count


def test_a_measured_job_is_left_to_those_that_measure_it() -> None:
    job = fed(60_000, work=0.95, kind="PyFunc")
    _, checked = look(DETECTOR, job)
    assert checked.outcome == "not-applicable"


def _waiting_without_maker(wait: float) -> Job:
    """JAX's steps take their batch with next from something that the profiler does not record (tf.data, a process)."""
    made = Maker()
    for i in range(10):
        at = 100_000 * i
        made.step(at, 99_000, i)
        made.span(made.main, "$builtins next", at + 10, wait)
        made.span(made.main, "PjitFunction(train_step)", at + 20 + wait, 90_000 - wait)
        made.op(made.main, "dot:dot_general", at + 30 + wait, 80_000 - wait)
    return holding(made.trace(), measured=False)


def _wait_beyond_its_stages() -> Job:
    """The pipeline's stages take a tenth of the wait for a batch: its records come from another process."""
    made = Maker()
    fetch = made.thread("tf_data_get_next")
    for i in range(10):
        at = 100_000 * i
        made.step(at, 99_000, i)
        made.call(at, 98_000, i + 1)
        made.get_next(fetch, at + 3, 60_000, i + 1)
        made.stage(fetch, "Root", at + 59_000, 900)
        made.op(fetch, "model/MatMul:MatMul", at + 61_000, 30_000, i + 1)
    return holding(made.trace(), measured=False)


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (lambda: _waiting_without_maker(40_000), "JAX's profiler records no work of TensorFlow"),
        (_wait_beyond_its_stages, "no stage of the pipeline takes as long (Root"),
        (lambda: loaded(60_000, steps=3), "2 whole steps are too few"),
    ],
)
def test_a_wait_whose_maker_is_not_seen_is_never_clear(job: Callable[[], Job], says: str) -> None:
    found, checked = look(DETECTOR, job())
    assert (found, checked.outcome) == ((), "undecided")
    assert "of the time for their input" in checked.hint
    assert says in checked.hint


def test_steps_that_hardly_wait_are_clear_whoever_makes_their_batches() -> None:
    assert look(DETECTOR, _waiting_without_maker(10_000))[1].outcome == "clear"
