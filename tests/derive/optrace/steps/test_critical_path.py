"""The critical path: it adds up to the step, goes where the waiting was for, and bounds what can be saved."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import US, Maker

from stepscope.derive.optrace.steps import critical_path
from stepscope.derive.optrace.steps.critical_path import HAND_OVER, PYTHON
from stepscope.derive.optrace.trace_view import OpView


def _names(view: OpView) -> list[str]:
    """What the first path consists of, from the step's start to its end; the framework around ops left out."""
    found = []
    for segment in reversed(view.paths[0].segments):
        op = view.labels.of(segment.event) if segment.event >= 0 else None
        if op is not None or segment.what in {PYTHON, HAND_OVER}:
            found.append(op[0] if op is not None else segment.what)
    return [name for i, name in enumerate(found) if name not in found[:i] or name == PYTHON]


def _two_chains(second: float = 300) -> OpView:
    """One pool thread runs a (400) and then c (200), another one b (``second``); c ends last."""
    made = Maker()
    one, other = made.thread("tf_Compute/1"), made.thread("tf_Compute/2")
    for i in range(4):
        at = 1000.0 * i
        made.step(at, 999, i)
        made.call(at + 100, 650, 10 + i)
        made.op(one, "a:MatMul", at + 110, 400, 10 + i)
        made.op(other, "b:MatMul", at + 110, second, 10 + i)
        made.op(one, "c:MatMul", at + 510, 200, 10 + i)
    return made.view()


def test_every_moment_of_a_step_is_on_its_path_once() -> None:
    view = _two_chains()
    for path in view.paths:
        ends = [segment.end_ns for segment in path.segments]
        starts = [segment.start_ns for segment in path.segments]
        assert starts[:-1] == ends[1:]
        assert (starts[-1], ends[0]) == (view.periods.start_ns[path.step], view.periods.end_ns[path.step])


def test_the_path_goes_through_the_ops_that_ended_last_and_python_around_the_call() -> None:
    assert _names(_two_chains()) == [PYTHON, HAND_OVER, "a", "c", PYTHON]


def test_what_halving_an_op_saves_is_bounded_by_who_ended_next() -> None:
    """Where b ends long before c, halving a saves all of its half; where 40 us before, only those are certain."""
    view = _two_chains(300)
    gains = {gain.what[0]: gain for gain in view.gains()}
    assert "b" not in gains
    assert gains["a"].high == pytest.approx(0.2)
    assert gains["a"].low == pytest.approx(0.2)
    near = {gain.what[0]: gain for gain in _two_chains(560).gains()}
    assert near["a"].high == pytest.approx(0.2)
    assert near["a"].low == pytest.approx(0.04, abs=0.002)
    assert view.gains()[0].high >= view.gains()[-1].high


def test_a_wait_for_a_batch_leads_into_the_pipeline() -> None:
    made = Maker()
    fetch, data, pool = made.thread("get_next"), made.thread("tf_data_pool"), made.thread("tf_Compute")
    for i in range(4):
        at = 1000.0 * i
        made.step(at, 999, i)
        made.call(at + 10, 950, 10 + i)
        made.get_next(fetch, at + 20, 700, 10 + i)
        made.stage(fetch, "Root", at + 21, 698)
        made.stage(fetch, "Root::Map", at + 22, 696)
        made.span(fetch, "InstantiatedCapturedFunction::Run", at + 23, 690, id=800 + i)
        made.op(data, "map/PyFunc:PyFunc", at + 25, 680, 800 + i)
        made.op(pool, "train/MatMul:MatMul", at + 722, 200, 10 + i)
    view = made.view()
    first = view.gains()[0]
    assert first.what == ("map/PyFunc", "PyFunc")
    assert first.path_ratio == pytest.approx(0.68, abs=0.01)
    assert sum(gain.path_ratio for gain in view.gains()) < 1


def test_a_kernel_leads_to_the_one_before_it_or_to_its_launch() -> None:
    """The first kernel is launched late, the second lies in the queue."""
    made = Maker()
    stream = made.stream(made.device())
    for i in range(4):
        at = 1000.0 * i
        made.step(at, 999, i)
        made.span(made.main, "train/Conv2D:Conv2D", at + 5, 200)
        made.launch(made.main, stream, "conv", at + 198, at + 202, 300, tf_op="train/Conv2D:Conv2D")
        made.launch(made.main, stream, "relu", at + 210, at + 503, 400, tf_op="train/Relu:Relu")
        made.span(made.main, "cudaStreamSynchronize", at + 230, 680)
    view = made.view()
    whats = [s.what or str(view.labels.of(s.event)) for s in reversed(view.paths[0].segments)]
    assert critical_path.DEVICE_GAP in whats
    gains = {gain.what: gain.path_ratio for gain in view.gains()}
    assert gains["train/Relu", "Relu"] == pytest.approx(0.4, abs=0.01)
    assert gains["train/Conv2D", "Conv2D"] == pytest.approx(
        0.3 + 0.19, abs=0.02
    )  # the kernel, and the op before its launch


def test_python_without_events_is_work_unless_something_was_waited_for() -> None:
    """JAX records no wait for a result: what ends just before a gap does was waited for, what ended long before not."""
    for ended, expected in ((900, True), (300, False)):
        made = Maker()
        pool = made.thread("tf_XLAExecute/1")
        for i in range(4):
            at = 1000.0 * i
            made.step(at, 999, i)
            made.span(made.main, "PjitFunction(f)", at, 50)
            made.span(pool, "dot:Dot", at + 60, ended - 60)
        whats = {gain.what[0] for gain in made.view().gains()}
        assert ("dot" in whats) is expected
        assert ("Python" in whats) is not expected or not expected


def test_typical_steps_are_those_nearest_to_the_median() -> None:
    made = Maker()
    at = 0.0
    for i, dur in enumerate([100] * 20 + [5000, 100]):
        made.step(at, dur, i)
        at += dur
    view = made.view()
    assert len(view.paths) == critical_path.MAX_STEPS
    assert all(view.periods.dur_ns[path.step] == 100 * US for path in view.paths)
