"""GRF001 repeated-retracing: its fixtures, and what looks like it."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import MS, SCRIPT, TRACED, US, Job, S
from tests.detectors.asking import codes, find, look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import CALL, MAIN_CALL, PERIOD, STEPS, keras_fit, retraced

from stepscope.detectors.base import Signal
from stepscope.detectors.graph.repeated_retracing import DETECTOR
from stepscope.detectors.signals import hint
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.events import Probe, Traced
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: retraced(60 * MS, traces=49),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", CALL), ("train.py", 10)),
        metrics=("retrace_ratio", "traces", "graph_nodes"),
        title=("train_step is retraced in 49 of 98 steps", "60 ms each", "Python value of rate", "30 %"),
        pipeline_stage="forward-backward",
        remedy="pass-tensors",
    ),
    silent=lambda: retraced(60 * MS, traces=2, first=50),
    not_applicable=lambda: keras_fit(20 * MS),
    missing="traces of tf.functions",
    below=lambda: retraced(6 * MS - US, traces=49),
    at=lambda: retraced(6 * MS, traces=49),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_retracing_is_not_compute() -> None:
    """What tracing costs is tracing's: nothing else is found, and the call keeps its own time only."""
    job = retraced(60 * MS, traces=49)
    assert codes(job) == ["GRF001"]
    anatomy = job.view().anatomy
    assert anatomy is not None
    assert anatomy.mean_ns("tracing") == pytest.approx(30 * MS, rel=0.01)
    assert anatomy.mean_ns("call") == pytest.approx(20 * MS, rel=0.01)


@pytest.mark.parametrize("first", [500 * MS, 20 * S])
def test_a_long_first_step_is_none(first: int) -> None:
    """The first trace and compilation are warm-up."""
    job = Job()
    call = job.function(**MAIN_CALL)
    job.trace(0, first, cause="first")
    call.at(0, first + 20 * MS, flags=TRACED)
    call.every(PERIOD, STEPS, dur=90 * MS, start=first + 30 * MS)
    assert codes(job) == []


def test_a_second_shape_is_none() -> None:
    """A bounded number of traces, as of a last partial batch, is no finding however long they take."""
    assert codes(retraced(2 * S // 20, traces=2, cause="shape")) == []


def test_the_cost_of_retracing_in_every_step_leaves_the_step_its_run() -> None:
    """Where every call traces, the interval of the cost contains what tracing itself took."""
    job = retraced(60 * MS)
    (found,) = find(job)
    assert found.cost.low <= 0.6 <= found.cost.high


def test_retraces_of_the_warm_up_do_not_make_a_steady_one_many() -> None:
    """One trace in the steady steps is no finding, however many there were before."""
    job = Job()
    call = job.function()
    at = 0
    for i in range(STEPS):
        tracing = {0: 10 * MS, 1: 10 * MS, 2: 10 * MS, 3: 10 * MS, 50: 400 * MS}.get(i, 0)
        call.at(at, 20 * MS + tracing, flags=TRACED if tracing else 0)
        if tracing:
            job.trace(at, tracing, cause="shape" if i in {1, 2, 50} else "first", argument="x")
        at += PERIOD + tracing
    assert find(job) == ()


def test_traces_in_gaps_of_the_recording_count() -> None:
    """Traces are recorded all the time; a long step that traces seldom lies wholly between two gaps."""
    job = retraced(60 * MS, traces=49)
    for step in range(1, 48):
        job.gap(step * 2 * PERIOD + 90 * MS, 5 * MS, 0, Kind.FUNCTION)
    (found,) = (one for one in find(job) if one.code == "GRF001")
    assert "49 of 98 steps" in found.title
    assert found.cost.ratio == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(
    ("cause", "owner", "trial"),
    [
        ("shape", "user", "reduce-retracing"),
        ("new-function", "user", "functions-reused"),
        ("python-value", "user", ""),
        ("object", "user", ""),
        ("dtype", "user", ""),
        ("structure", "user", ""),
        ("shape", "keras", ""),
        ("new-function", "keras", ""),
    ],
)
def test_a_trial_is_one_of_the_cause(cause: str, owner: str, trial: str) -> None:
    """Changing shapes and functions made anew have one, if the function is the program's; a changing value has none."""
    job = retraced(60 * MS, traces=49, cause=cause)
    job.events = [msgspec.structs.replace(e, owner=owner) if isinstance(e, Traced) else e for e in job.events]
    job.command = ("python", "train.py")
    (found,) = (one for one in report_of(job.session()).findings if one.code == "GRF001")
    proofs = [remedy.what_if for remedy in found.remedies]
    assert proofs == [f"stepscope whatif --try {trial} -- python train.py" if trial else None]
    assert ("reduce_retracing" in found.remedies[0].text) == (trial == "reduce-retracing")


def _jax(cause: str, *, turns: int = STEPS) -> Job:
    """A loop of a jitted function that is traced and compiled in each turn, for 60 of 80 ms."""
    job = Job()
    job.framework("jax", "0.12.0")
    call = job.function(role="jit", **MAIN_CALL)
    for i in range(turns):
        job.trace(
            i * PERIOD,
            60 * MS,
            cause=cause if i else "first",
            argument="x",
            ordinal=i + 1,
            stack=[(SCRIPT, "main", CALL)],
        )
        call.at(i * PERIOD, 0)
    return job


@pytest.mark.parametrize(
    ("cause", "remedy"), [("shape", "fewer-shapes"), ("new-function", "make-function-once"), ("object", "pass-arrays")]
)
def test_a_program_of_jax_is_compiled_in_each_step(cause: str, remedy: str) -> None:
    """Calls of jitted functions are the steps; the remedy names no TensorFlow."""
    (found,) = [one for one in find(_jax(cause)) if one.code == "GRF001"]
    assert [one.id for one in found.remedies] == [remedy]
    assert "tf." not in found.remedies[0].text + found.explanation
    assert [one.metric for one in found.evidence] == ["retrace_ratio", "traces"]


def test_calls_of_jax_that_were_seen_in_part_are_no_steps() -> None:
    """The probe has left: what it saw would look like the whole run, and the hint says so."""
    job = _jax("shape")
    for attached in (True, False):
        job.event(Probe(name="jit_calls", attached=attached))
    assert job.view().steps is None
    assert "outside of jitted functions" in hint(Signal.STEPS, job.view())


def test_a_job_of_jax_whose_compilations_were_not_seen_is_not_clear() -> None:
    """Its steps alone say nothing of them."""
    job = Job()
    job.framework("jax", "0.12.0")
    job.function(role="jit", **MAIN_CALL).every(PERIOD, STEPS, dur=0)
    _, checked = look(job)
    assert (checked["GRF001"].outcome, checked["GRF001"].hint) == ("not-applicable", "no compilation of JAX was seen")
