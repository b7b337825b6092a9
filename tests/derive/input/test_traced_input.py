"""Where tf.data keeps no model, an op trace says how long steps waited and for which stage."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.op_traces import US, Maker
from tests.derive.sessions import MS, Job

from stepscope.causes.job import hidden_wait
from stepscope.derive.view import SessionView
from stepscope.detectors import registry
from stepscope.detectors.base import run
from stepscope.model.log.events import IteratorModel
from stepscope.model.session.session import CaptureInfo, StoredOpTrace
from stepscope.tables.errors import SessionError
from stepscope.tables.findings import Finding
from stepscope.tables.optrace import OpTrace

STEP = 10 * MS
FIRST = 20
"""The traced steps begin with this one."""


def _job() -> Job:
    """Forty executions of Keras' train function, 9 of every 10 ms, on TensorFlow without the live model."""
    job = Job(ended_ns=40 * STEP)
    job.loop("fit").at(0, 40 * STEP)
    job.execution().every(STEP, 40, dur=9 * MS)
    source = job.dataset("TensorSliceDataset", line=70)
    mapped = job.dataset("MapDataset", source, line=71, fn_name="decode", fn_file="/job/train.py", fn_line=15)
    batched = job.dataset("BatchDataset", mapped, line=72)
    iterator = job.iterator(batched, batch=8)
    job.event(IteratorModel(at=1, iterator=iterator, error="no-op"))
    return job


def _trace(wait_us: float = 6_000, steps: int = 6, slower: float = 1.0) -> Maker:
    """Steps of 10 ms whose call of 9 ms waits ``wait_us`` for a sequential map; all ``slower``."""
    made = Maker()
    fetch, pool = made.thread("tf_data_iterator_get_next/1"), made.thread("tf_Compute/1")
    for i in range(steps):
        at, run_ = FIRST * 10_000 + 10_000 * i * slower, 50 + i
        made.step(at, 9_990 * slower, i)
        made.call(at, 9_000 * slower, run_)
        made.get_next(fetch, at + 3, wait_us * slower, run_)
        made.stage(fetch, "Root", at + 4, wait_us * slower - 2)
        made.stage(fetch, "Root::Batch", at + 5, wait_us * slower - 4)
        made.stage(fetch, "Root::Batch::Map", at + 6, wait_us * slower - 20)
        made.op(pool, "model/MatMul:MatMul", at + 3 + wait_us * slower, (8_900 - wait_us) * slower, run_)
    return made


def _view(made: Maker | None, *, worker: str = "100", broken: bool = False) -> SessionView:
    def load() -> OpTrace:
        if made is None or broken:
            raise SessionError("captures/optraces/ops-001: damaged")
        return made.trace()

    session = _job().session()
    traces = [StoredOpTrace(name="ops-001", worker=worker, source=Maker().builder.source, load=load)]
    capture = CaptureInfo(id="abc", outcome="done", files=("optraces/ops-001",))
    manifest = msgspec.structs.replace(session.manifest, captures=(capture,))
    return SessionView(replace(session, op_traces=traces if made else [], manifest=manifest))


def _finding(view: SessionView) -> Finding | None:
    findings, _, failures = run([d for d in registry.ALL if d.code == "INP001"], view)
    assert failures == ()
    return findings[0] if findings else None


def test_without_a_trace_the_wait_is_hidden_and_with_one_it_is_known() -> None:
    assert _view(None).get(hidden_wait.build)
    view = _view(_trace())
    assert not view.get(hidden_wait.build)
    assert view.pipeline is not None
    assert view.pipeline.wait_ns_per_execution == pytest.approx(6 * MS, rel=0.01)
    assert view.anatomy is not None
    assert view.anatomy.ratio("input-wait") == pytest.approx(0.6, abs=0.01)
    assert view.pipeline.slowest is not None
    assert view.pipeline.slowest.name == "Map"
    assert view.pipeline.slowest.self_ns == pytest.approx(5_980 * US, rel=0.01)


def test_the_detector_decides_with_the_users_line_and_the_capture_it_rests_on() -> None:
    found = _finding(_view(_trace()))
    assert found is not None
    assert found.cost.ratio == pytest.approx(0.6, abs=0.01)
    assert (found.where[0].file, found.where[0].line) == ("train.py", 71)
    waited, traced = found.evidence[0], found.evidence[1]
    assert (waited.metric, "capture:abc" in waited.refs) == ("input_wait_ratio", True)
    assert (traced.metric, traced.value) == ("traced_steps", 5)
    assert "op trace of 5 steps" in found.explanation


def test_a_trace_of_steps_that_do_not_wait_clears() -> None:
    view = _view(_trace(wait_us=100))
    assert not view.get(hidden_wait.build)
    assert _finding(view) is None


def test_slower_traced_steps_carry_their_share_over_not_their_time() -> None:
    view = _view(_trace(slower=1.5))
    assert view.pipeline is not None
    assert view.pipeline.wait_ns_per_execution == pytest.approx(6 * MS, rel=0.01)


@pytest.mark.parametrize(
    "view",
    [
        lambda: _view(_trace(), worker="7"),
        lambda: _view(_trace(steps=3)),
        lambda: _view(_trace(), broken=True),
        lambda: _view(_trace(slower=0.2)),
        lambda: _view(Maker()),
    ],
    ids=["another process", "too few steps", "damaged", "other steps", "no stage"],
)
def test_a_trace_that_says_nothing_of_these_steps_decides_nothing(view: Callable[[], SessionView]) -> None:
    assert view().get(hidden_wait.build)


def test_a_damaged_trace_is_told() -> None:
    assert _view(_trace(), broken=True).traces.problems == ("captures/optraces/ops-001: damaged",)


def test_level_0_names_what_the_host_did_between_two_calls() -> None:
    job = _job()
    job.callback("Plot.on_train_batch_end").every(STEP, 40, start=9 * MS, dur=MS)
    session = job.session()
    stored = StoredOpTrace(name="ops-001", worker="100", source=Maker().builder.source, load=lambda: _trace().trace())
    (traced,) = SessionView(replace(session, op_traces=[stored])).traces.views
    assert traced.breakdown.ratio("callbacks") == pytest.approx(0.1, abs=0.01)
    assert traced.breakdown.ratio("other-python") < 0.01
