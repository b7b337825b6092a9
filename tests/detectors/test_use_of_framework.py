"""Sessions about how a program uses its framework that look like a known problem and are another one, or none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job, S
from tests.detectors.graph_jobs import unrolled_and_read
from tests.detectors.jobs import (
    FUNCTION_CALL,
    PERIOD,
    REPORT,
    STEPS,
    TF,
    compiled_anew,
    eager,
    eagerly_fitted,
    growing,
    keras_fit,
    pulled,
    reloading,
    small_batches,
    synced,
    train_loop,
    unrolled,
)
from tests.detectors.test_look_alikes import codes, find

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.events import GraphSize, Name
from stepscope.model.log.program import Setting
from stepscope.model.session.session import HostInfo
from stepscope.wire.kinds import Kind


def test_an_eager_step_of_keras_is_one_finding() -> None:
    """Keras' own step runs eagerly by a setting only: GRF003, and not HST002 besides."""
    assert codes(eagerly_fitted(49, 39)) == ["GRF003"]
    assert codes(eagerly_fitted(5, 88)) == []


def test_what_keras_does_around_its_graph_is_not_eager() -> None:
    """Python of Keras' inside of its compiled step's call runs no op."""
    assert codes(eager(60, 5, job=keras_fit(99 * MS))) == []


def test_run_eagerly_of_another_model_does_not_explain_a_loop() -> None:
    """A custom loop that runs op by op lacks a tf.function, whatever a model was compiled with."""
    job = eager(49, 39)
    job.compiled(run_eagerly=True, file=SCRIPT, line=21)
    assert codes(job) == ["HST002"]


@pytest.mark.parametrize(("tracing", "every", "found"), [(40 * MS, 2, []), (60 * MS, 10, []), (60 * MS, 2, ["HST007"])])
def test_models_of_folds_are_none(tracing: int, every: int, found: list[str]) -> None:
    """A model built anew for each fold is wanted, unless building takes a quarter of the time and more."""
    assert [c for c in codes(compiled_anew(tracing, every=every)) if c != "HST003"] == found


def test_a_model_compiled_again_is_placed_at_compile() -> None:
    """Keras' compile is what is known of a model that is built."""
    found = next(f for f in find(compiled_anew(60 * MS)) if f.code == "HST007")
    assert [(p.file, p.line) for p in found.where] == [("train.py", 21)]
    assert found.introduced_stage == "model building"


@pytest.mark.parametrize(("steps", "found"), [(8, True), (5, False)])
def test_a_few_long_fits_that_compile_are_a_loop(steps: int, *, found: bool) -> None:
    """Of eight epochs that compile the model again only the last are steady: those before count as well."""
    assert ("HST007" in codes(compiled_anew(60 * MS, steps=steps))) == found


@pytest.mark.parametrize("until", [0, 20, 49])
def test_a_graph_that_is_finished_is_none(until: int) -> None:
    """Fetches of many kinds on a graph that is finished, or was during the run, are no growing graph."""
    assert "GRF004" not in codes(growing(62 * MS, until=until))


def test_a_graph_that_grows_by_little_is_none() -> None:
    """A few ops in a whole run, as of a saver for each epoch, grow no graph."""
    job = growing(62 * MS, ops=0)
    job.event(GraphSize(at=90 * PERIOD, id=1, ops=103))
    assert "GRF004" not in codes(job)


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


def test_functions_that_run_eagerly_are_named() -> None:
    """Ops run from Python below the call of a tf.function: a setting does it, at the line that set it."""
    job = train_loop(99 * MS)
    job.event(Setting(name="run_functions_eagerly", value=True, file=SCRIPT, line=3, function="main"))
    (found,) = find(eager(49, 39, job=job, below=(Frame(SCRIPT, "main", 44), FUNCTION_CALL)))
    assert (found.code, found.remedies[0].id) == ("GRF003", "remove-run-functions-eagerly")
    assert [(p.file, p.line) for p in found.where] == [("train.py", 3), ("train.py", 12)]


@pytest.mark.parametrize("own", [True, False])
def test_the_debug_mode_of_tf_data_is_what_makes_python_of_a_map(*, own: bool) -> None:
    """Functions of maps that TensorFlow itself calls as Python: the setting is the cause, not for a py_function."""
    job = pulled(60 * MS, python=58 * MS, role="py_function")
    job.event(Setting(name="data_debug_mode", value=True, file=SCRIPT, line=3, function="main"))
    if not own:
        file = f"{TF}/data/ops/structured_function.py"
        job.events = [replace(e, own=False, file=file) if isinstance(e, Name) and e.role else e for e in job.events]
    (found,) = find(job)
    assert found.code == "INP002"
    assert ("debug mode of tf.data is on" in found.title) == (not own)
    assert found.remedies[0].id == ("use-tensorflow-ops" if own else "data-debug-mode-off")
    assert (found.where[0].file, found.where[0].line) == ("train.py", 15 if own else 3)


def test_a_program_of_sessions_does_not_run_eagerly() -> None:
    """Ops that are added to the graph of a session are not run."""
    job = Job()
    job.call(Kind.SESSION_RUN, "train_op").every(PERIOD, STEPS, dur=5 * MS)
    assert "HST002" not in codes(eager(49, 39, job=job))


def test_a_loop_over_layers_is_not_an_unrolled_loop() -> None:
    """A stack of a dozen large layers makes a large graph too, but each turn brings its own variables."""
    assert codes(unrolled(9_920 * MS, nodes=11_940, variables=578)) == []
    assert codes(unrolled(9_920 * MS, nodes=4_226, variables=11)) == ["GRF002"]


@pytest.mark.parametrize(
    ("turns", "of", "found"),
    [
        (15, "", []),
        (16, "", ["GRF002"]),
        (40, "layers", []),
        (40, "weights", []),
    ],
)
def test_a_loop_is_told_by_what_the_graph_repeats(turns: int, of: str, found: list[str]) -> None:
    """Enough turns of one computation; turns over layers or weights of their own are none, however many."""
    job = unrolled_and_read(9_920 * MS, turns=turns, layers=of == "layers", weights=of == "weights")
    assert codes(job) == found


def test_samples_tell_the_loop_where_the_graph_was_not_read() -> None:
    """A job that ends soon after its trace: the loop by the samples, and that it is one by nodes per variable."""
    (found,) = find(unrolled(9_920 * MS))
    assert (found.code, found.where[0].line) == ("GRF002", 4)
    assert [e.metric for e in found.evidence if e.threshold is not None][-2:] == ["nodes_per_variable", "samples"]


def test_a_graph_that_nobody_saw_is_undecided() -> None:
    """A large graph that took long to trace, without nodes or samples: nothing is cleared."""
    _, checked, _ = run(ALL, unrolled(9_920 * MS, samples=0).view())
    outcomes = {c.detector: c for c in checked}
    assert (outcomes["GRF002"].outcome, outcomes["GRF002"].missing) == ("undecided", ("nodes of traced graphs",))


@pytest.mark.parametrize(("wait", "host", "every"), [(60 * MS, MS, 1), (US, 60 * MS, 1), (60 * MS, 30 * MS, 5)])
def test_a_wait_that_loses_nothing_is_none(wait: int, host: int, every: int) -> None:
    """A host with nothing else to do, a result that is there (on CPUs), a value read now and then for a log."""
    assert "HST008" not in codes(synced(wait, host, every=every))


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


def test_a_copy_on_a_host_without_gpu_is_no_wait() -> None:
    """What a read of a tensor takes on CPUs is its copy: the call had returned with the result."""
    job = synced(40 * MS, 30 * MS)
    job.host = HostInfo()
    assert codes(job) == []


def test_a_wait_beside_slow_python_is_one_finding() -> None:
    """Where samples say what the host does in the same loop, that is the root."""
    job = synced(40 * MS, 30 * MS)
    frames = (Frame(SCRIPT, "main", REPORT), Frame(SCRIPT, "report", 8))
    job.samples([i * PERIOD + 85 * MS for i in range(STEPS)], *frames)
    assert codes(job) == ["HST001"]
