"""HST007 rebuilt-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job, S
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import PERIOD, STEPS, compiled_anew, nothing, reloading, train_loop

from stepscope.detectors.host.rebuilt_in_loop import DETECTOR
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: reloading(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 33),),
        metrics=("rebuild_ratio", "builds", "build_ns", "steps_between"),
        title=("the model is loaded", "again and again", "98 times in 98 steps", "load_model", "60 %"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="none",
        remedy="build-once",
    ),
    silent=lambda: reloading(80 * MS, every=30),
    not_applicable=nothing,
    missing="steps",
    below=lambda: reloading(5 * MS - US),
    at=lambda: reloading(5 * MS),
    edges={
        "min_builds": Edge(below=lambda: compiled_anew(60 * MS, steps=5), at=lambda: compiled_anew(60 * MS, steps=6)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("tracing", "every", "found"), [(40 * MS, 2, []), (60 * MS, 10, []), (60 * MS, 2, ["HST007"])])
def test_models_of_folds_are_none(tracing: int, every: int, found: list[str]) -> None:
    """A model built anew for each fold is wanted, unless building takes a quarter of the time and more."""
    assert [c for c in codes(compiled_anew(tracing, every=every)) if c != "HST003"] == found


@pytest.mark.parametrize(
    ("tracing", "every", "sizes", "severity"),
    [
        (60 * MS, 2, 1, "info"),
        (60 * MS, 1, 1, "high"),
        (60 * MS, 1, 3, "info"),
    ],
    ids=["a-third", "most-alike", "most-of-several-sizes"],
)
def test_models_of_trials_are_information(tracing: int, every: int, sizes: int, severity: str) -> None:
    """Models that are built and trained are trials: information, unless they are alike and take most of the time."""
    (found,) = (f for f in find(compiled_anew(tracing, every=every, sizes=sizes)) if f.code == "HST007")
    assert found.severity == severity
    assert ("as for folds or trials" in found.title) == (severity == "info")


def test_a_model_compiled_again_is_placed_at_compile() -> None:
    """Keras' compile is what is known of a model that is built."""
    found = next(f for f in find(compiled_anew(60 * MS)) if f.code == "HST007")
    assert [(p.file, p.line) for p in found.where] == [("train.py", 21)]
    assert found.introduced_stage == "model building"


def test_the_same_model_compiled_again_is_no_trial() -> None:
    """A model that is compiled for each epoch has its functions traced again for nothing."""
    (found,) = (f for f in find(compiled_anew(30 * MS, every=2, same=True)) if f.code == "HST007")
    assert (found.severity, "the same model is compiled again and again" in found.title) == ("medium", True)


@pytest.mark.parametrize(("steps", "found"), [(8, True), (5, False)])
def test_a_few_long_fits_that_compile_are_a_loop(steps: int, *, found: bool) -> None:
    """Of eight epochs that compile the model again only the last are steady: those before count as well."""
    assert ("HST007" in codes(compiled_anew(60 * MS, steps=steps))) == found


@pytest.mark.parametrize("role", ["model", "saved_model", "graph", "variables"])
def test_loading_is_not_eager(role: str) -> None:
    """What a load does in TensorFlow is no eager step, and belongs to no batch."""
    job = reloading(80 * MS, role=role)
    frames = (Frame(SCRIPT, "handle", 33), Frame("/site-packages/tensorflow/python/ops/gen_io_ops.py", "restore", 9))
    job.samples([i * PERIOD + 30 * MS for i in range(1, STEPS)], frames[0], frames[1]._replace(own=False))
    assert codes(job) == ["HST007"]


def test_tracing_that_a_load_causes_is_told_with_it() -> None:
    """The functions of a model that is loaded anew are new ones, and traced: one root, one finding."""
    job = reloading(50 * MS)
    for i in range(1, STEPS):
        at, where = i * PERIOD + 60 * MS, [(SCRIPT, "handle", 34)]
        job.trace(at, 25 * MS, cause="new-function", owner="user", function="score", stack=where)
    assert codes(job) == ["HST007"]


def test_a_session_for_each_request_is_told_with_its_first_runs() -> None:
    """ONNX Runtime's session in the loop: its making, and what its first run takes beyond a usual one."""
    job = Job()
    made = job.call(Kind.BUILD, "InferenceSession", role="session", call_file=SCRIPT, call_line=31)
    run = job.call(Kind.INFERENCE, "bert.onnx", call_file=SCRIPT, call_line=32)
    for i in range(STEPS):
        if i % 10 == 0:
            made.at(i * PERIOD, 50 * MS)
        run.at(i * PERIOD + 50 * MS, (40 if i % 10 == 0 else 20) * MS, arg=8)
    (found,) = (f for f in find(job) if f.code == "HST007")
    assert [(p.file, p.line) for p in found.where] == [("train.py", 31)]
    assert found.exposed_stage == "prediction"
    assert found.cost.ratio == pytest.approx(9 * 70 / 9_800)


def test_a_load_before_the_loop_is_none() -> None:
    """One load, however long, is what every job does."""
    job = train_loop(90 * MS, offset=5 * S)
    job.call(Kind.BUILD, "load_model", role="model", call_file=SCRIPT, call_line=3).at(0, 4 * S)
    assert codes(job) == []
